#include "framework/communicator.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"

namespace anyccl {

std::uint32_t slots_for(int size) {
  return std::max(16U, std::bit_ceil(2 * static_cast<std::uint32_t>(size)));
}

std::size_t line_bytes_for(int size) {
  // Longer publications are faster through the ring, whose lines no peer has read lately: measured.
  constexpr std::size_t kMostLines = 32, kLine = 64;
  const std::size_t lines = kMostLines * slots_for(2) / slots_for(size);  // as much in all slots
  return std::max<std::size_t>(lines, 1) * kLine + kLineBytes;
}

std::size_t ring_bytes_for(int size, bool network) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  if (network) return 4 * kMiB;
  return size <= 2 ? 2 * kMiB : kMiB;  // measured: ADR 0023
}

/// A collective that was issued without waiting: everything it needs is its own.
struct Comm::Queued final : public Task {
  Queued(KeptCall call, Rank me, const std::vector<Transport*>& route,
         const std::vector<Transport*>& transports)
      : kept(std::move(call)), execution(me, route, transports) {}
  bool advance() override { return execution.advance(); }
  void awaited(std::vector<Rank>& ranks) const override { execution.awaited(ranks); }

  KeptCall kept;
  std::shared_ptr<const Prepared> prepared;
  std::vector<std::byte> scratch;
  Position position;
  bool started = false;
  Execution execution;
};

Comm::Comm(Membership membership)
    : me_(std::move(membership)),
      census_(Census::of_process()),
      route_(static_cast<std::size_t>(me_.size)),
      slots_(slots_for(me_.size)),
      messages_(me_.rank, route_),
      fork_generation_((watch_forks(), anyccl::fork_generation())) {
  for (const auto& t : me_.transports) {
    transports_.push_back(t.get());
    for (const Rank r : t->peers()) route_[uindex(r)] = t.get();
  }
  alone_ = make_queued({});
}

std::shared_ptr<Comm::Queued> Comm::make_queued(const Call& call) const {
  return std::make_shared<Queued>(KeptCall(call, me_.rank, me_.size), me_.rank, route_,
                                  transports_);
}

Status Comm::failure() const {
  if (forked())
    return error(
        Code::invalid_usage,
        "this communicator was created before fork; create it in the process that uses it");
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

std::byte* Comm::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes + 64) scratch_.resize(bytes + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch_.data());
  return scratch_.data() + ((address + 63) / 64 * 64 - address);
}

Status Comm::run(const Call& call) {
  if (forked()) return failure();  // before the token, which a thread of the parent may have held
  std::shared_ptr<Comm> alive;     // longer than the token, if another thread aborts it meanwhile
  Token token(token_);
  take(token);
  if (failed_.load(std::memory_order_acquire)) return failure();
  if (call.is_point_to_point())
    return messages_.does_at_once(call, looks()) ? Status() : run_message(token, call, alive);
  const CallKey key(call, me_.rank);
  if (key != last_key_ || !has_buffers(call)) ANYCCL_CHECK(check_call(call));
  note_limit(call.timeout);
  if (!idle()) {
    alive = weak_from_this().lock();
    ANYCCL_TRY(const std::shared_ptr<Task> task, enqueue(call, key, Gate::open));
    return wait(token, *task);
  }
  if (key != last_key_) ANYCCL_CHECK(prepare(call, key));
  const Prepared& p = *last_;
  Execution& alone = alone_->execution;
  alone.limit(call.timeout);
  alone.start(p, call, next_position(p), p.scratch_bytes == 0 ? nullptr : scratch(p.scratch_bytes));
  alone.advance();
  if (alone.done()) return alone.status();
  const bool crowded = is_crowded(call.threads);
  if (crowded) census_.look_sometimes();
  Waiter waiter(crowded);
  while (!alone.done()) {
    if (wanted_.load(std::memory_order_relaxed) > 0) {
      alive = weak_from_this().lock();
      return wait_with_others(token);
    }
    if (crowded ? alone.advance() : alone.advance_patiently()) {
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next == Waiter::Next::poll) continue;
    census_.look();
    if (const Status bad = trouble(alone, &alone); !bad.ok()) fail_locked(bad);
    if (failed_.load(std::memory_order_relaxed)) return failure();
    if (next == Waiter::Next::sleep) sleep_shortly(token, waiter.nap(), &alone);
  }
  return alone.status();
}

/// By a blocking call, when other threads have something to call, too: from now on it is one that
/// was issued, so that what they call has a place behind it.
Status Comm::wait_with_others(Token& token) {
  const std::shared_ptr<Queued> mine = std::exchange(alone_, make_queued({}));
  mine->prepared = last_;
  mine->scratch = std::move(scratch_);  // and stays where it is
  mine->started = true;
  collectives_.push_back(mine);
  return wait(token, mine->execution);
}

/// `alive`: for who waits.
Status Comm::run_message(Token& token, const Call& call, std::shared_ptr<Comm>& alive) {
  ANYCCL_CHECK(check_call(call));
  note_limit(call.timeout);
  std::shared_ptr<Transfer> transfer = messages_.add(call, Gate::open);
  if (!transfer->done()) alive = weak_from_this().lock();
  Status status = wait(token, *transfer);
  if (token.held()) messages_.recycle(std::move(transfer));
  return status;
}

Status Comm::run_together(std::span<const Call* const> calls) {
  if (forked()) return failure();
  Token token(token_);
  take(token);
  std::vector<std::shared_ptr<Transfer>> messages = std::move(together_);
  std::vector<std::shared_ptr<Task>> others;
  Status first;
  const auto note = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  std::uint32_t patience = looks();  // of the first receive only: meanwhile nothing else goes on
  const auto issue_all = [&](bool receives) {
    for (const Call* call : calls) {
      if ((call->collective == Collective::recv) != receives) continue;
      const std::uint32_t looks = receives ? std::exchange(patience, 1) : 1;
      if (call->is_point_to_point() && !failed_.load(std::memory_order_relaxed) &&
          messages_.does_at_once(*call, looks))
        continue;
      note_limit(call->timeout);
      Status status = ready(*call);
      if (status.ok() && call->is_point_to_point()) {
        messages.push_back(messages_.add(*call, Gate::open));
      } else if (status.ok()) {
        auto task = enqueue(*call, CallKey(*call, me_.rank), Gate::open);
        status = task.status();
        if (task.ok()) others.push_back(*std::move(task));
      }
      note(std::move(status));
    }
  };
  issue_all(false);
  issue_all(true);  // who looks for a message should have sent its own before
  for (const auto& task : others) note(wait(token, *task));
  for (const auto& message : messages) note(wait(token, *message));
  if (token.held()) {
    for (auto& message : messages) messages_.recycle(std::move(message));
    messages.clear();
    together_ = std::move(messages);
  }
  return first;
}

Result<std::shared_ptr<Task>> Comm::issue(const Call& call, Gate gate) {
  if (forked()) return failure();
  Token token(token_);
  take(token);
  ANYCCL_CHECK(ready(call));
  note_limit(call.timeout);
  ANYCCL_TRY(std::shared_ptr<Task> task, enqueue(call, CallKey(call, me_.rank), gate));
  if (gate == Gate::open)
    progress_locked();
  else
    gated_.store(true, std::memory_order_relaxed);
  return task;
}

Result<std::shared_ptr<Task>> Comm::enqueue(const Call& call, const CallKey& key, Gate gate) {
  if (call.is_point_to_point()) return std::shared_ptr<Task>(messages_.add(call, gate));
  const auto queued = make_queued(call);
  queued->execution.set(gate);
  queued->execution.limit(call.timeout);
  if (key != last_key_) ANYCCL_CHECK(prepare(queued->kept.call(), key));
  queued->prepared = last_;
  queued->scratch.resize(queued->prepared->scratch_bytes);
  queued->position = next_position(*queued->prepared);
  collectives_.push_back(queued);
  return std::shared_ptr<Task>(queued, &queued->execution);
}

bool Comm::progress_locked() {
  bool moved = false;
  while (!collectives_.empty()) {
    const std::shared_ptr<Queued> head = collectives_.front();
    if (!head->execution.is_open()) break;
    if (!head->started)
      head->execution.start(*head->prepared, head->kept.call(), head->position,
                            head->scratch.data());
    head->started = true;
    // trouble() may have finished it, and then its buffers belong to the caller again.
    if (!head->execution.done()) moved = head->execution.advance() || moved;
    if (!head->execution.done()) break;
    collectives_.pop_front();
  }
  return messages_.advance() || moved;
}

void Comm::examine_locked() {
  census_.look();
  if (failed_.load(std::memory_order_relaxed)) return;
  Status bad;
  if (!collectives_.empty()) {
    Execution& head = collectives_.front()->execution;
    bad = collectives_.front()->started ? trouble(head, &head) : news();
  }
  for (const auto& queued : collectives_)
    if (bad.ok()) bad = lateness(queued->execution, &queued->execution);
  for (const std::shared_ptr<Task>& task : messages_.first_waiting())
    if (bad.ok() && !task->done()) bad = trouble(*task, nullptr);
  if (const auto late = messages_.late(); bad.ok() && late != nullptr)
    bad = lateness(*late, nullptr);
  if (bad.ok() && messages_.waits_for_anyone()) bad = no_sender();
  if (bad.ok()) bad = messages_.problem();
  if (!bad.ok()) fail_locked(bad);
}

void Comm::fail_locked(const Status& why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_.ok() && failed_.load(std::memory_order_relaxed)) return;
    if (failure_.ok()) failure_ = why;
  }
  // Peers hear of it before any caller here does, whose memory they may be reading.
  for (Transport* t : transports_) t->abort(why);
  failed_.store(true, std::memory_order_release);
  log(LogLevel::info, "{}: {}", me_.names[uindex(me_.rank)], why.message());
  const Status status = failure();
  for (const auto& queued : collectives_)
    if (!queued->execution.done()) queued->execution.complete(status);
  collectives_.clear();
  messages_.end(status);
}

std::string Comm::last_plan() {
  if (forked()) return "";
  Token token(token_);
  take(token);
  if (last_ == nullptr) return "";
  const bool simple = last_->geometry.sized() || last_->largest > me_.line_bytes;
  const bool one_line =
      me_.only_lines ? me_.line_bytes == kLineBytes : last_->largest <= kLineBytes;
  std::string text = fmt::format("{} {} ", id(*last_->program->algorithm),
                                 simple     ? "Simple"
                                 : one_line ? "LL"
                                            : "LL128");
  for (std::size_t i = 0; i < transports_.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? "+" : "", transports_[i]->name());
  return transports_.empty() ? text + "loopback" : text;
}

}  // namespace anyccl
