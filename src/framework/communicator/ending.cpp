// How a communicator ends: by a failure, an abort, or a goodbye.

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "framework/communicator/communicator.hpp"
#include "framework/communicator/queued_collective.hpp"
#include "framework/waiting/interrupt.hpp"

namespace anyccl {

/// The caller holds the progress lock.
void Comm::fail(const Status& why) {
  if (!failure_.begin(why)) return;
  completed_ = count_completed();
  // Peers hear of it before any caller here does, whose memory they may be reading.
  for (Transport* t : routes_.transports) t->abort(why);
  for (Transport* t : routes_.transports) t->deliver_abort();
  // A caller that sees the failure finds the dump, with the operations that were open.
  dump_by_itself("failure");
  if (!is_idle()) told_.store(true, std::memory_order_relaxed);
  failure_.end();
  log(LogSubsystem::init, "{}: {}", me_.names[uindex(me_.rank)], why.message());
  const Status status = failure_.why();
  if (Execution& alone = alone_->execution; alone.kind() != 0 && !alone.done())
    alone.complete(status);
  for (const auto& queued : collectives_)
    if (!queued->execution.done()) queued->execution.complete(status);
  collectives_.clear();
  messages_.end(status);
  trace_by_itself();
}

/// Calls that follow each other fast are not slowed down by more than a percent.
Status Comm::glance() {
  constexpr std::uint64_t kTicks = 100'000;  // for each rank: 30 to 100 us
  const std::uint64_t now = recorder_.clock().now();
  if (now - glanced_ < kTicks * static_cast<std::uint64_t>(me_.size - 1)) return {};
  glanced_ = now;
  const Status bad = diagnosis_.glance(sequence_);
  if (bad.ok()) return {};
  fail(bad);
  return failure();
}

/// A call that this rank cannot make, for want of memory, must not leave its peers waiting in it.
Status Comm::fail_without_memory(const Call& call) {
  CallRecord record;
  record.collective = static_cast<std::uint8_t>(call.collective);
  record.dtype = static_cast<std::uint8_t>(call.dtype);
  record.op = static_cast<std::uint8_t>(call.op);
  record.root = index(call.root);
  record.count = call.count;
  abort(error(Code::system_error, "{} has no memory for a call: {}", me_.names[uindex(me_.rank)],
              describe(record)));
  return failure();
}

/// The caller holds the progress lock. What is not complete is queued, or runs alone.
std::uint64_t Comm::count_completed() const {
  const Execution& alone = alone_->execution;
  const auto open = static_cast<std::uint64_t>(
      std::count_if(collectives_.begin(), collectives_.end(), [](const auto& queued) {
        return queued->check == nullptr && !queued->execution.done() && !queued->is_extra;
      }));
  return sequence_ - checks_ - open - (alone.kind() != 0 && !alone.done() ? 1 : 0);
}

std::uint64_t Comm::completed() {
  if (forked()) return 0;
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  return failure_.happened() ? completed_ : count_completed();
}

bool Comm::has_left(Rank peer) {
  Transport* const transport = routes_.to[uindex(peer)];
  ProgressLock progress_lock = loop_.progress_lock();
  if (forked() || transport == nullptr || !progress_lock.try_lock()) return false;
  static_cast<void>(transport->check());
  return transport->state(peer) == PeerState::left;
}

std::string Comm::call_without_me(Rank peer) {
  ProgressLock progress_lock = loop_.progress_lock();
  if (forked() || !progress_lock.try_lock()) return "";
  static_cast<void>(diagnosis_.poll_control());
  const std::string call = diagnosis_.report().call_after(peer, sequence_);
  return call.empty() ? "" : fmt::format("{}, of {}", call, me_.label);
}

void Comm::check_peers() {
  if (forked()) return;
  loop_.diagnose();
  ProgressLock progress_lock = loop_.progress_lock();
  if (!progress_lock.try_lock() || failure_.happened() || !is_idle()) return;
  if (const Status bad = diagnosis_.reported(); !bad.ok()) fail(bad);
}

void Comm::abort(const Status& why) {
  if (forked()) return;  // the parent's peers are not ours
  failure_.ask(why);
  for (Transport* t : routes_.transports) t->abort(why);
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);  // its holder looks at the failure within milliseconds
  if (!failure_.happened()) fail(failure_.why());
}

void Comm::interrupt() {
  abort(error(Code::aborted, "{} was interrupted by its program while it waited",
              me_.names[uindex(me_.rank)]));
}

/// Peers may never know of a receive, but they read from a send, and wait for this rank in a
/// collective.
Status Comm::finish_late() {
  const auto& messages = messages_.waiting();
  std::string wait;
  if (!collectives_.empty() && collectives_.front()->started) {
    const Execution& first = collectives_.front()->execution;
    wait = diagnosis_.report().text(first, &first);
  } else if (!messages.empty()) {
    wait = diagnosis_.report().text(*messages.front(), nullptr);
  }
  if (wait.empty())
    wait = fmt::format("{} of {} are open", collectives_.empty() ? "messages" : "collectives",
                       me_.names[uindex(me_.rank)]);
  const Status why = error(Code::timeout,
                           "what was issued before the communicator was finalized has not ended "
                           "within the time limit: {}",
                           wait);
  if (collectives_.empty() && messages_.has_only_receives())
    messages_.end(why);
  else
    fail(why);
  return why;
}

Status Comm::finish(Deadline deadline) {
  if (forked()) return {};
  Status late;
  Backoff backoff(loop_.oversubscription(), is_oversubscribed(), loop_.wait_policy(), 0);
  Interrupt asked;
  for (;;) {
    ProgressLock progress_lock = loop_.progress_lock();
    loop_.lock(progress_lock);
    if (failure_.happened()) {
      late = told_.load(std::memory_order_relaxed) ? Status() : failure_.why();
      if (late.code() != Code::invalid_usage) late = {};  // of calls in which this rank only gave
      break;
    }
    if (!is_over() && deadline.passed()) {
      late = finish_late();
      break;
    }
    if (is_over()) {
      if (const Status bad = diagnosis_.glance(sequence_); bad.code() == Code::invalid_usage) {
        fail(bad);
        continue;
      }
      messages_.end_own(error(Code::invalid_usage,
                              "a message of rank {} to itself has only one side, and the "
                              "communicator was destroyed",
                              index(me_.rank)));
      messages_.one_sided().close_all();
      listens_ = false;
      break;
    }
    if (advance()) {
      loop_.ring();
      backoff.reset();
      continue;
    }
    const Backoff::Next next = backoff.next();
    if (Backoff::checks(next)) {
      diagnosis_.wait_for_all();
      diagnose();
    }
    if (next != Backoff::Next::poll && asked.is_due()) {
      progress_lock.unlock();
      if (!Interrupt::is_wanted()) continue;
      interrupt();
      late = failure();
      break;
    }
    if (Backoff::sleeps(next))
      loop_.sleep(progress_lock, std::min<std::chrono::nanoseconds>(
                                     backoff.sleep_time(),
                                     std::chrono::milliseconds(std::max(1, deadline.poll_ms()))));
  }
  loop_.ring();
  leave(deadline);
  if (!recorder_.is_traced() || failure_.happened()) return late;  // a failure has written it
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  trace_by_itself();
  return late;
}

void Comm::leave(Deadline deadline) {
  if (forked()) return;  // the parent's peers are not ours
  left_.store(true, std::memory_order_relaxed);
  for (Transport* t : routes_.transports) t->leave(deadline);
}

void Comm::leave_for_exit(Deadline deadline) {
  if (forked()) return;
  const bool is_still =
      (gated_.load(std::memory_order_relaxed) || recorder_.is_traced()) && loop_.seize(deadline);
  leave();
  if (is_still && !failure_.happened()) trace_by_itself();
}

}  // namespace anyccl
