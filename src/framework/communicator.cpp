#include "framework/communicator.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"

namespace anyccl {

std::uint32_t slots_for(int size) {
  return std::max(16U, std::bit_ceil(2 * static_cast<std::uint32_t>(size)));
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
  std::uint64_t sequence = 0;
  bool started = false;
  Execution execution;
};

Comm::Comm(Membership membership)
    : me_(std::move(membership)),
      route_(static_cast<std::size_t>(me_.size)),
      slots_(slots_for(me_.size)),
      cache_(kCacheEntries),
      alone_(me_.rank, route_, transports_),
      pairs_(static_cast<std::size_t>(me_.size)),
      fork_generation_((watch_forks(), anyccl::fork_generation())) {
  for (const auto& t : me_.transports) {
    transports_.push_back(t.get());
    for (const Rank r : t->peers()) route_[uindex(r)] = t.get();
  }
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
  Token token(token_);
  take(token);
  if (failed_.load(std::memory_order_acquire)) return failure();
  const CallKey key(call, me_.rank);
  if (key != last_key_ || !has_buffers(call)) ANYCCL_CHECK(check_call(call));
  if (call.is_point_to_point() || !idle()) {
    ANYCCL_TRY(const std::shared_ptr<Task> task, enqueue(call, key, Gate::open));
    token.release();
    return wait(*task);
  }
  if (key != last_key_) ANYCCL_CHECK(prepare(call, key));
  const Prepared& p = *last_;
  alone_.start(p, call, ++sequence_, p.scratch_bytes == 0 ? nullptr : scratch(p.scratch_bytes));
  alone_.advance();
  if (alone_.done()) return alone_.status();
  Waiter waiter(me_.crowded_here);
  while (!alone_.done()) {
    if (me_.crowded_here ? alone_.advance() : alone_.advance_patiently()) {
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next == Waiter::Next::poll) continue;
    if (const Status bad = trouble(alone_, &alone_); !bad.ok()) fail_locked(bad);
    if (failed_.load(std::memory_order_relaxed)) return failure();
    if (next == Waiter::Next::sleep) sleep_shortly(token);
  }
  return alone_.status();
}

Result<std::shared_ptr<Task>> Comm::issue(const Call& call, Gate gate) {
  if (forked()) return failure();
  Token token(token_);
  take(token);
  ANYCCL_CHECK(failure());
  const CallKey key(call, me_.rank);
  ANYCCL_CHECK(check_call(call));
  ANYCCL_TRY(std::shared_ptr<Task> task, enqueue(call, key, gate));
  if (gate == Gate::open)
    progress_locked();
  else
    gated_.store(true, std::memory_order_relaxed);
  return task;
}

Result<std::shared_ptr<Task>> Comm::enqueue(const Call& call, const CallKey& key, Gate gate) {
  if (call.is_point_to_point()) return enqueue_transfer(call, gate);
  auto queued =
      std::make_shared<Queued>(KeptCall(call, me_.rank, me_.size), me_.rank, route_, transports_);
  queued->execution.set(gate);
  if (key != last_key_) ANYCCL_CHECK(prepare(queued->kept.call(), key));
  queued->prepared = last_;
  queued->scratch.resize(queued->prepared->scratch_bytes);
  queued->sequence = ++sequence_;
  collectives_.push_back(queued);
  return std::shared_ptr<Task>(queued, &queued->execution);
}

Result<std::shared_ptr<Task>> Comm::enqueue_transfer(const Call& call, Gate gate) {
  const bool sends = call.collective == Collective::send;
  if (call.root == me_.rank) {
    auto task = std::make_shared<SelfTransfer>();
    task->set(gate);
    (sends ? self_sends_ : self_receives_).push_back({call, task});
    match_self();
    return std::shared_ptr<Task>(task);
  }
  Pair& pair = pairs_[uindex(call.root)];
  auto task = std::make_shared<Transfer>(call, *route_[uindex(call.root)],
                                         sends ? ++pair.sent : ++pair.received);
  task->set(gate);
  (sends ? pair.sends : pair.receives).push_back(task);
  ++open_transfers_;
  return std::shared_ptr<Task>(task);
}

bool Comm::match_self() {
  bool moved = false;
  while (self_will_meet() && self_sends_.front().task->is_open() &&
         self_receives_.front().task->is_open()) {
    const SelfMessage from = std::move(self_sends_.front()), to = std::move(self_receives_.front());
    self_sends_.pop_front();
    self_receives_.pop_front();
    Status status;
    if (from.call.count != to.call.count || from.call.dtype != to.call.dtype)
      status = error(Code::invalid_usage, "rank {} sends {} {} to itself but receives {} {}",
                     index(me_.rank), from.call.count, name_of(from.call.dtype), to.call.count,
                     name_of(to.call.dtype));
    else if (from.call.count > 0)
      std::memmove(to.call.output, from.call.input, from.call.count * bytes_of(from.call.dtype));
    from.task->complete(status);
    to.task->complete(status);
    moved = true;
  }
  return moved;
}

bool Comm::progress_locked() {
  bool moved = match_self();
  while (!collectives_.empty()) {
    const std::shared_ptr<Queued> head = collectives_.front();
    if (!head->execution.is_open()) break;
    if (!head->started)
      head->execution.start(*head->prepared, head->kept.call(), head->sequence,
                            head->scratch.data());
    head->started = true;
    // trouble() may have finished it, and then its buffers belong to the caller again.
    if (!head->execution.done()) moved = head->execution.advance() || moved;
    if (!head->execution.done()) break;
    collectives_.pop_front();
  }
  if (open_transfers_ == 0) return moved;
  for (Pair& pair : pairs_)
    for (auto* queue : {&pair.receives, &pair.sends})
      while (!queue->empty() && queue->front()->is_open()) {
        moved = queue->front()->advance() || moved;
        if (!queue->front()->done()) break;
        queue->pop_front();
        --open_transfers_;
      }
  return moved;
}

void Comm::examine_locked() {
  if (failed_.load(std::memory_order_relaxed)) return;
  Status bad;
  if (!collectives_.empty()) {
    Execution& head = collectives_.front()->execution;
    bad = collectives_.front()->started ? trouble(head, &head) : news();
  }
  if (bad.ok() && open_transfers_ > 0)
    for (const Pair& pair : pairs_)
      for (const auto* queue : {&pair.receives, &pair.sends})
        if (bad.ok() && !queue->empty() && queue->front()->is_open())
          bad = trouble(*queue->front(), nullptr);
  if (!bad.ok()) fail_locked(bad);
}

void Comm::fail_locked(const Status& why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_.ok() && failed_.load(std::memory_order_relaxed)) return;
    if (failure_.ok()) failure_ = why;
  }
  failed_.store(true, std::memory_order_release);
  log(LogLevel::info, "{}: {}", me_.names[uindex(me_.rank)], why.message());
  for (Transport* t : transports_) t->abort(why);
  const Status status = failure();
  for (const auto& queued : collectives_)
    if (!queued->execution.done()) queued->execution.complete(status);
  collectives_.clear();
  for (Pair& pair : pairs_)
    for (auto* queue : {&pair.receives, &pair.sends}) {
      for (const auto& transfer : *queue) transfer->complete(status);
      queue->clear();
    }
  end_self_messages(status);
  open_transfers_ = 0;
}

void Comm::end_self_messages(const Status& why) {
  for (auto* messages : {&self_sends_, &self_receives_}) {
    for (const SelfMessage& m : *messages) m.task->complete(why);
    messages->clear();
  }
}

std::string Comm::last_plan() {
  if (forked()) return "";
  Token token(token_);
  take(token);
  if (last_ == nullptr) return "";
  const bool sized = last_->geometry.sized();
  std::string text = id(*last_->program->algorithm) +
                     (!sized && !me_.simple && last_->largest <= 56 ? " LL " : " Simple ");
  for (std::size_t i = 0; i < transports_.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? "+" : "", transports_[i]->name());
  return transports_.empty() ? text + "loopback" : text;
}

}  // namespace anyccl
