// Comm: how threads wait for tasks, and share the token that lets one of them make progress.

#include <sched.h>

#include "base/error.hpp"
#include "framework/communicator.hpp"

namespace anyccl {
namespace {

class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) {
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Counted() { count_.fetch_sub(1, std::memory_order_relaxed); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

bool Comm::progress() {
  if (forked()) return false;
  Token token(token_);
  if (!token.try_take() || failed_.load(std::memory_order_relaxed)) return false;
  const bool moved = progress_locked();
  if (moved) bell_.ring();
  return moved;
}

void Comm::examine() {
  if (forked()) return;
  Token token(token_);
  if (token.try_take()) examine_locked();
}

Status Comm::wait(Task& task, Deadline deadline) {
  if (forked()) return task.done() ? task.status() : failure();
  Token token(token_);
  return wait(token, task, deadline);
}

/// Holds the token as long as nobody else wants it.
Status Comm::wait(Token& token, Task& task, Deadline deadline) {
  if (task.done()) return task.status();
  const Counted waiting(waiting_);
  const bool crowded = is_crowded();
  if (crowded) census_.look_sometimes();
  Waiter waiter(crowded);
  while (!task.done()) {
    const bool wanted = wanted_.load(std::memory_order_relaxed) > 0;
    if (wanted) token.release();
    if (!token.held() && (wanted || !token.try_take())) {
      if (resting_.load(std::memory_order_acquire)) transports_.back()->wake();
      ::sched_yield();
      const Waiter::Next next = waiter.next();
      if (next != Waiter::Next::poll && deadline.passed()) break;
      if (next == Waiter::Next::sleep && !task.done()) bell_.sleep(Waiter::kNap);
      continue;
    }
    if (failed_.load(std::memory_order_relaxed)) break;
    if (progress_locked()) {
      bell_.ring();
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next != Waiter::Next::poll) examine_locked();
    if (next != Waiter::Next::poll && deadline.passed()) break;
    if (next == Waiter::Next::sleep && !task.done())
      sleep_shortly(token, deadline.is_never() ? waiter.nap() : Waiter::kNap);
  }
  bell_.ring();
  if (task.done()) return task.status();
  const Status status = failure();
  return status.ok() ? Status(Code::in_progress, "the operation is not complete yet") : status;
}

bool Comm::progress_in_background() {
  if (forked() || waiting_.load(std::memory_order_relaxed) > 0) return false;
  Token token(token_);
  if (!token.try_take() || failed_.load(std::memory_order_relaxed)) return false;
  const bool moved = progress_locked();
  quiet_.store(idle() && !messages_.will_meet_itself(), std::memory_order_release);
  if (moved) bell_.ring();
  return moved;
}

void Comm::rest_in_background(std::chrono::nanoseconds most) {
  if (forked()) return;
  Token token(token_);
  if (waiting_.load(std::memory_order_relaxed) > 0 || !token.try_take())
    return bell_.sleep(Waiter::kNap);
  if (failed_.load(std::memory_order_relaxed)) return;
  examine_locked();
  if (idle() || transports_.empty()) {  // only a gate can change that, and open() rings
    token.release();
    return bell_.sleep(Waiter::kNap);
  }
  resting_.store(true, std::memory_order_release);
  sleep_shortly(token, most);
  resting_.store(false, std::memory_order_relaxed);
}

bool Comm::test(Task& task) {
  if (!task.done()) progress();
  return task.done();
}

Status Comm::limit(Task& task, std::chrono::milliseconds time) {
  if (forked()) return failure();
  Token token(token_);
  take(token);
  note_limit(time);
  task.limit(time);
  return {};
}

void Comm::open(Task& task) {
  task.open();
  rouse();
  bell_.ring();
}

/// Waits for the token. Who only waits for a task leaves it to those who come here: they are about
/// to add to what can be done.
void Comm::queue_for(Token& token) {
  wanted_.fetch_add(1, std::memory_order_seq_cst);
  do {
    rouse();
    ::sched_yield();
  } while (!token.try_take());
  wanted_.fetch_sub(1, std::memory_order_relaxed);
}

/// By the holder of the token. `alone`: what it waits for, if that is not among what was issued.
/// Who wants something of it stores that first and then looks at `asleep_`: see rouse().
void Comm::sleep_shortly(Token& token, std::chrono::nanoseconds most, Execution* alone) {
  if (wanted_.load(std::memory_order_relaxed) > 0) return;
  if (transports_.empty()) {
    token.release();
    return bell_.sleep(Waiter::kNap);
  }
  Transport& last = *transports_.back();
  asleep_.store(true, std::memory_order_seq_cst);
  last.prepare_sleep();
  const bool moved = alone != nullptr ? alone->advance() : progress_locked();
  const bool stays = moved || nudged_.exchange(false, std::memory_order_seq_cst) ||
                     wanted_.load(std::memory_order_seq_cst) > 0 ||
                     abort_asked_.load(std::memory_order_seq_cst);
  if (short_limits_ || transports_.size() > 1 || !last.wakes_surely())
    most = std::min<std::chrono::nanoseconds>(most, Waiter::kNap);
  last.sleep(stays ? std::chrono::nanoseconds(0) : most);
  asleep_.store(false, std::memory_order_relaxed);
  if (moved) bell_.ring();
}

void Comm::rouse() {
  nudged_.store(true, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) transports_.back()->wake();
}

void Comm::rest() {
  if (forked()) return;
  Token token(token_);
  if (token.try_take())
    sleep_shortly(token, Waiter::kNap);
  else
    bell_.sleep(Waiter::kNap);
}

void Comm::abort(const Status& why) {
  abort_alone(why);
  for (const auto& part : parts()) part->abort_alone(why);
}

void Comm::abort_alone(const Status& why) {
  if (forked()) return;  // the parent's peers are not ours
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_.ok()) failure_ = why;
  }
  abort_asked_.store(true, std::memory_order_release);
  for (Transport* t : transports_) t->abort(why);
  Token token(token_);
  take(token);  // who holds it looks at abort_asked_ within milliseconds
  if (!failed_.load(std::memory_order_relaxed)) fail_locked(failure_);
}

void Comm::finish() {
  if (forked()) return;
  Waiter waiter(is_crowded());
  for (;;) {
    Token token(token_);
    take(token);
    if (failed_.load(std::memory_order_relaxed)) break;
    if (idle() && !messages_.will_meet_itself()) {
      messages_.end_own(error(Code::invalid_usage,
                              "a message of rank {} to itself has only one side, and the "
                              "communicator was destroyed",
                              index(me_.rank)));
      break;
    }
    if (progress_locked()) {
      bell_.ring();
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next != Waiter::Next::poll) examine_locked();
    if (next == Waiter::Next::sleep) sleep_shortly(token, waiter.nap());
  }
  bell_.ring();
  leave();
  for (const auto& part : parts_) part->finish();
}

void Comm::leave() {
  if (forked()) return;  // the parent's peers are not ours
  for (Transport* t : transports_) t->leave();
}

void Comm::leave_for_exit(Deadline deadline) {
  if (forked()) return;
  Token token(token_);
  if (gated_.load(std::memory_order_relaxed)) {
    wanted_.fetch_add(1, std::memory_order_relaxed);  // for good: workers only nap from now on
    while (!token.try_take() && !deadline.passed()) {
      rouse();
      ::sched_yield();
    }
    token.keep();
  }
  leave();
}

}  // namespace anyccl
