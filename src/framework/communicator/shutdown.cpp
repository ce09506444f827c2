#include "framework/communicator/shutdown.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "framework/waiting/interrupt.hpp"

namespace anyccl {

/// Peers may never know of a receive, but they read from a send, and wait for this rank in a
/// collective.
Status Shutdown::end_late() {
  const CollectiveQueue& queue = comm_.queue_;
  const auto& messages = comm_.messages_.waiting();
  const WaitReport& report = comm_.diagnosis_.report();
  std::string wait;
  if (const Execution* const first = queue.running())
    wait = report.text(*first, first);
  else if (!messages.empty())
    wait = report.text(*messages.front(), nullptr);
  if (wait.empty())
    wait = fmt::format("{} of {} are open", queue.empty() ? "messages" : "collectives",
                       comm_.me_.names[uindex(comm_.rank())]);
  const Status why = error(Code::timeout,
                           "what was issued before the communicator was finalized has not ended "
                           "within the time limit: {}",
                           wait);
  if (queue.empty() && comm_.messages_.has_only_receives())
    comm_.messages_.end(why);
  else
    comm_.fail(why);
  return why;
}

/// For the holder of the progress lock: whether the wait is over, with the status of finish() in
/// `late`. It then ends windows and messages of this rank to itself, or at `deadline` everything;
/// after a failure nothing is left to end.
bool Shutdown::has_ended(Deadline deadline, Status& late) {
  if (!comm_.failure_.happened() && comm_.is_over())
    if (const Status bad = comm_.diagnosis_.glance(comm_.sequence());
        bad.code() == Code::invalid_usage)
      comm_.fail(bad);
  if (comm_.failure_.happened()) {
    if (!comm_.told_.load(std::memory_order_relaxed)) late = comm_.failure_.why();
    if (late.code() != Code::invalid_usage) late = {};  // of calls in which this rank only gave
    return true;
  }
  if (!comm_.is_over()) {
    if (deadline.passed()) late = end_late();
    return !late.ok();
  }
  comm_.messages_.end_own(error(Code::invalid_usage,
                                "a message of rank {} to itself has only one side, and the "
                                "communicator was destroyed",
                                index(comm_.rank())));
  comm_.messages_.one_sided().close_all();
  comm_.listens_ = false;
  return true;
}

Status Shutdown::wait_for_all(Deadline deadline) {
  ProgressLoop& loop = comm_.loop_;
  Status late;
  Backoff backoff(loop.oversubscription(), loop.is_oversubscribed(), loop.wait_policy(), 0);
  Interrupt asked;
  for (;;) {
    ProgressLock progress_lock = loop.progress_lock();
    loop.lock(progress_lock);
    if (has_ended(deadline, late)) return late;
    if (comm_.advance()) {
      loop.ring();
      backoff.reset();
      continue;
    }
    const Backoff::Next next = backoff.next();
    if (Backoff::checks(next)) {
      comm_.diagnosis_.wait_for_all();
      comm_.diagnose();
    }
    if (next != Backoff::Next::poll && asked.is_due()) {
      progress_lock.unlock();
      if (!Interrupt::is_wanted()) continue;
      comm_.interrupt();
      return comm_.failure();
    }
    if (Backoff::sleeps(next))
      loop.sleep(progress_lock, std::min<std::chrono::nanoseconds>(
                                    backoff.sleep_time(),
                                    std::chrono::milliseconds(std::max(1, deadline.poll_ms()))));
  }
}

Status Shutdown::finish(Deadline deadline) {
  if (comm_.forked()) return {};
  const Status late = wait_for_all(deadline);
  comm_.loop_.ring();
  leave(deadline);
  if (!comm_.records_.recorder().is_traced() || comm_.failure_.happened())
    return late;  // a failure has written it
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  comm_.records_.write_trace();
  return late;
}

void Shutdown::leave(Deadline deadline) {
  comm_.left_.store(true, std::memory_order_relaxed);
  for (Transport* t : comm_.routes_.transports) t->leave(deadline);
}

void Shutdown::leave_for_exit(Deadline deadline) {
  if (comm_.forked()) return;  // the parent's peers are not ours
  const bool is_still =
      (comm_.gated_.load(std::memory_order_relaxed) || comm_.records_.recorder().is_traced()) &&
      comm_.loop_.seize(deadline);
  leave(Deadline::never());
  if (is_still && !comm_.failure_.happened()) comm_.records_.write_trace();
}

}  // namespace anyccl
