#include "framework/communicator.hpp"

#include <sched.h>

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

/// Holds the right to make progress. One read-modify-write on a line that stays in this core's
/// cache.
class Comm::Token {
 public:
  explicit Token(std::atomic<bool>& token) : token_(token) {}
  ~Token() { release(); }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  bool try_take() { return held_ = !token_.exchange(true, std::memory_order_acquire); }
  void take() {
    while (!try_take()) ::sched_yield();
  }
  void release() {
    if (held_) token_.store(false, std::memory_order_release);
    held_ = false;
  }

 private:
  std::atomic<bool>& token_;
  bool held_ = false;
};

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
  token.take();
  if (failed_.load(std::memory_order_acquire)) return failure();
  const CallKey key(call, me_.rank);
  if (key != last_key_ || !has_buffers(call)) ANYCCL_CHECK(check_call(call));
  if (call.is_point_to_point() || !idle()) {
    ANYCCL_TRY(const std::shared_ptr<Task> task, enqueue(call, key));
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
    if (next == Waiter::Next::sleep) sleep_shortly();
  }
  return alone_.status();
}

Result<std::shared_ptr<Task>> Comm::issue(const Call& call) {
  if (forked()) return failure();
  Token token(token_);
  token.take();
  ANYCCL_CHECK(failure());
  const CallKey key(call, me_.rank);
  ANYCCL_CHECK(check_call(call));
  ANYCCL_TRY(std::shared_ptr<Task> task, enqueue(call, key));
  progress_locked();
  return task;
}

Result<std::shared_ptr<Task>> Comm::enqueue(const Call& call, const CallKey& key) {
  if (call.is_point_to_point()) return enqueue_transfer(call);
  auto queued =
      std::make_shared<Queued>(KeptCall(call, me_.rank, me_.size), me_.rank, route_, transports_);
  if (key != last_key_) ANYCCL_CHECK(prepare(queued->kept.call(), key));
  queued->prepared = last_;
  queued->scratch.resize(queued->prepared->scratch_bytes);
  queued->sequence = ++sequence_;
  collectives_.push_back(queued);
  return std::shared_ptr<Task>(queued, &queued->execution);
}

Result<std::shared_ptr<Task>> Comm::enqueue_transfer(const Call& call) {
  const bool sends = call.collective == Collective::send;
  if (call.root == me_.rank) {
    auto task = std::make_shared<SelfTransfer>();
    (sends ? self_sends_ : self_receives_).push_back({call, task});
    ANYCCL_CHECK(match_self());
    return std::shared_ptr<Task>(task);
  }
  Pair& pair = pairs_[uindex(call.root)];
  auto task = std::make_shared<Transfer>(call, *route_[uindex(call.root)],
                                         sends ? ++pair.sent : ++pair.received);
  (sends ? pair.sends : pair.receives).push_back(task);
  ++open_transfers_;
  return std::shared_ptr<Task>(task);
}

Status Comm::match_self() {
  while (!self_sends_.empty() && !self_receives_.empty()) {
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
  }
  return {};
}

bool Comm::progress_locked() {
  bool moved = false;
  while (!collectives_.empty()) {
    const std::shared_ptr<Queued> head = collectives_.front();
    if (!head->started)
      head->execution.start(*head->prepared, head->kept.call(), head->sequence,
                            head->scratch.data());
    head->started = true;
    moved = head->execution.advance() || moved;
    if (!head->execution.done()) break;
    collectives_.pop_front();
  }
  if (open_transfers_ == 0) return moved;
  for (Pair& pair : pairs_)
    for (auto* queue : {&pair.receives, &pair.sends})
      while (!queue->empty()) {
        moved = queue->front()->advance() || moved;
        if (!queue->front()->done()) break;
        queue->pop_front();
        --open_transfers_;
      }
  return moved;
}

bool Comm::progress() {
  if (forked()) return false;
  Token token(token_);
  return token.try_take() && !failed_.load(std::memory_order_relaxed) && progress_locked();
}

void Comm::examine() {
  if (forked()) return;
  Token token(token_);
  if (token.try_take()) examine_locked();
}

void Comm::examine_locked() {
  if (failed_.load(std::memory_order_relaxed)) return;
  Status bad;
  if (!collectives_.empty() && collectives_.front()->started) {
    Execution& head = collectives_.front()->execution;
    bad = trouble(head, &head);
  }
  if (bad.ok() && open_transfers_ > 0)
    for (const Pair& pair : pairs_)
      for (const auto* queue : {&pair.receives, &pair.sends})
        if (bad.ok() && !queue->empty()) bad = trouble(*queue->front(), nullptr);
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
  for (auto* messages : {&self_sends_, &self_receives_}) {
    for (const SelfMessage& m : *messages) m.task->complete(status);
    messages->clear();
  }
  open_transfers_ = 0;
}

Status Comm::wait(Task& task) {
  if (forked()) return task.done() ? task.status() : failure();
  Waiter waiter(me_.crowded_here);
  while (!task.done()) {
    Waiter::Next next = Waiter::Next::poll;
    Token token(token_);
    if (token.try_take()) {
      if (failed_.load(std::memory_order_relaxed)) break;
      if (progress_locked()) {
        waiter.reset();
        continue;
      }
      next = waiter.next();
      if (next != Waiter::Next::poll) examine_locked();
      if (next == Waiter::Next::sleep && !task.done()) sleep_shortly();
    } else {
      ::sched_yield();
    }
  }
  return task.done() ? task.status() : failure();
}

bool Comm::test(Task& task) {
  if (!task.done()) progress();
  return task.done();
}

void Comm::sleep_shortly() {
  if (!transports_.empty()) transports_.back()->sleep(Waiter::sleep_time());
}

void Comm::abort(const Status& why) {
  if (forked()) return;  // the parent's peers are not ours
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_.ok()) failure_ = why;
  }
  abort_asked_.store(true, std::memory_order_release);
  for (Transport* t : transports_) t->abort(why);
  Token token(token_);
  token.take();  // who holds it looks at abort_asked_ within milliseconds
  if (!failed_.load(std::memory_order_relaxed)) fail_locked(failure_);
}

void Comm::finish() {
  if (forked()) return;
  Waiter waiter(me_.crowded_here);
  for (;;) {
    Token token(token_);
    token.take();
    if (failed_.load(std::memory_order_relaxed) || idle()) break;
    if (progress_locked()) {
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next != Waiter::Next::poll) examine_locked();
    if (next == Waiter::Next::sleep) sleep_shortly();
  }
  leave();
}

void Comm::leave() {
  if (forked()) return;  // the parent's peers are not ours
  for (Transport* t : transports_) t->leave();
}

std::string Comm::last_plan() {
  if (forked()) return "";
  Token token(token_);
  token.take();
  if (last_ == nullptr) return "";
  const bool sized = last_->geometry.sized();
  std::string text = id(*last_->program->algorithm) +
                     (!sized && !me_.simple && last_->largest <= 56 ? " LL " : " Simple ");
  for (std::size_t i = 0; i < transports_.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? "+" : "", transports_[i]->name());
  return transports_.empty() ? text + "loopback" : text;
}

}  // namespace anyccl
