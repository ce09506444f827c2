#include "framework/progress_loop.hpp"

#include <sched.h>

#include <algorithm>

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

bool ProgressLoop::progress() {
  Token token(token_);
  if (!token.try_take() || failure_.happened()) return false;
  const bool moved = work_.advance();
  if (moved) bell_.ring();
  return moved;
}

void ProgressLoop::examine() {
  Token token(token_);
  if (token.try_take()) work_.examine();
}

Status ProgressLoop::wait(Token& token, Task& task, Deadline deadline) {
  if (task.done()) return task.status();
  const Counted waiting(waiting_);
  const bool crowded = is_crowded();
  if (crowded) census_.look_sometimes();
  Waiter waiter(crowded);
  while (!task.done()) {
    const bool wanted = is_wanted();
    if (wanted) token.release();
    if (!token.held() && (wanted || !token.try_take())) {
      if (resting_.load(std::memory_order_acquire)) transports_.back()->wake();
      ::sched_yield();
      const Waiter::Next next = waiter.next();
      if (next != Waiter::Next::poll && deadline.passed()) break;
      if (next == Waiter::Next::sleep && !task.done()) bell_.sleep(Waiter::kNap);
      continue;
    }
    if (failure_.happened()) break;
    if (work_.advance()) {
      bell_.ring();
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next != Waiter::Next::poll) work_.examine();
    if (next != Waiter::Next::poll && deadline.passed()) break;
    if (next == Waiter::Next::sleep && !task.done())
      sleep(token, deadline.is_never() ? waiter.nap() : Waiter::kNap);
  }
  bell_.ring();
  if (task.done()) return task.status();
  return failure_.happened() ? failure_.why()
                             : Status(Code::in_progress, "the operation is not complete yet");
}

bool ProgressLoop::progress_in_background() {
  if (waiting_.load(std::memory_order_relaxed) > 0) return false;
  Token token(token_);
  if (!token.try_take() || failure_.happened()) return false;
  const bool moved = work_.advance();
  quiet_.store(work_.is_over(), std::memory_order_release);
  if (moved) bell_.ring();
  return moved;
}

void ProgressLoop::rest_in_background(std::chrono::nanoseconds most) {
  Token token(token_);
  if (waiting_.load(std::memory_order_relaxed) > 0 || !token.try_take())
    return bell_.sleep(Waiter::kNap);
  if (failure_.happened()) return;
  work_.examine();
  if (work_.is_idle() || transports_.empty()) {  // only a gate can change that, and it rings
    token.release();
    return bell_.sleep(Waiter::kNap);
  }
  resting_.store(true, std::memory_order_release);
  sleep(token, most);
  resting_.store(false, std::memory_order_relaxed);
}

void ProgressLoop::rest() {
  Token token(token_);
  if (token.try_take())
    sleep(token, Waiter::kNap);
  else
    bell_.sleep(Waiter::kNap);
}

/// Waits for the token. A thread that only waits for a task leaves it to those that come here: they
/// are about to add to what can be done.
void ProgressLoop::queue_for(Token& token) {
  wanted_.fetch_add(1, std::memory_order_seq_cst);
  do {
    rouse();
    ::sched_yield();
  } while (!token.try_take());
  wanted_.fetch_sub(1, std::memory_order_relaxed);
}

void ProgressLoop::sleep(Token& token, std::chrono::nanoseconds most, Task* alone) {
  if (is_wanted()) return;
  if (transports_.empty()) {
    token.release();
    return bell_.sleep(Waiter::kNap);
  }
  Transport& last = *transports_.back();
  asleep_.store(true, std::memory_order_seq_cst);
  last.prepare_sleep();
  const bool moved = alone != nullptr ? alone->advance() : work_.advance();
  const bool stays = moved || nudged_.exchange(false, std::memory_order_seq_cst) ||
                     wanted_.load(std::memory_order_seq_cst) > 0 || failure_.is_asked();
  if (short_limits_ || transports_.size() > 1 || !last.wakes_surely())
    most = std::min<std::chrono::nanoseconds>(most, Waiter::kNap);
  last.sleep(stays ? std::chrono::nanoseconds(0) : most);
  asleep_.store(false, std::memory_order_relaxed);
  if (moved) bell_.ring();
}

void ProgressLoop::rouse() {
  nudged_.store(true, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) transports_.back()->wake();
}

void ProgressLoop::seize(Deadline deadline) {
  Token token(token_);
  wanted_.fetch_add(1, std::memory_order_relaxed);  // for good: others only nap from now on
  while (!token.try_take() && !deadline.passed()) {
    rouse();
    ::sched_yield();
  }
  token.keep();
}

}  // namespace anyccl
