#include "executor.hpp"

#include <new>
#include <thread>
#include <utility>

namespace anyccl::torch {

void Executor::expect() {
  const std::lock_guard lock(mutex_);
  ++outstanding_;
}

void Executor::submit(std::function<void()> task) {
  expect();
  submit_expected(std::move(task));
}

void Executor::submit_expected(std::function<void()> task) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() <= idle_threads_) return more_.notify_one();
    if (start_locked() || threads_ > 0) return;  // one of them will run it
    task = std::move(tasks_.back());
    tasks_.pop_back();
  } catch (...) {
    // Out of memory: the task is still here.
  }
  run_and_release(std::move(task));
}

/// Starts one more thread, if that may help; false if it cannot be started.
bool Executor::start_locked() noexcept {
  if (threads_ >= kMost || (threads_ >= kPlenty && has_spare_)) {
    stuck_.notify_one();
    return true;
  }
  const bool spare = threads_ >= kPlenty;
  try {
    std::thread([self = shared_from_this(), spare] { self->run_tasks(spare); }).detach();
  } catch (...) {
    return false;
  }
  ++threads_;
  has_spare_ = has_spare_ || spare;
  return true;
}

bool Executor::wait_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [&] { return outstanding_ == 0; });
}

void Executor::run_tasks(bool spare) {
  std::unique_lock lock(mutex_);
  if (spare) {
    const bool needed = wait_until_stuck(lock);
    has_spare_ = false;
    if (needed && tasks_.size() > 1) start_locked();  // the next spare one
    if (!needed) {
      --threads_;
      return;
    }
  }
  for (;;) {
    if (tasks_.empty()) {
      ++idle_threads_;
      more_.wait_for(lock, kLinger, [&] { return !tasks_.empty(); });
      --idle_threads_;
      if (tasks_.empty()) {
        --threads_;
        return;
      }
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    run_and_release(std::move(task));
    lock.lock();
    ++finished_;
  }
}

/// True as soon as tasks wait and no thread has finished one for a while: all of them may wait for
/// these tasks. False if there are none for long.
bool Executor::wait_until_stuck(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::milliseconds kStuck{5};
  for (;;) {
    if (tasks_.empty() && !stuck_.wait_for(lock, kLinger, [&] { return !tasks_.empty(); }))
      return false;
    const std::uint64_t before = finished_;
    if (!stuck_.wait_for(lock, kStuck, [&] { return finished_ != before || tasks_.empty(); }))
      return true;
  }
}

/// Runs the task, and releases its objects. After stop() it does not run, and they stay for ever.
void Executor::run_and_release(std::function<void()> task) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      // Its objects cannot be released without an interpreter.
      static_cast<void>(new (std::nothrow) std::function<void()>(std::move(task)));
      return;
    }
    ++running_;
  }
  try {
    task();
    task = nullptr;
  } catch (...) {
    // Out of memory: a waiting thread asks the library itself.
  }
  const std::lock_guard lock(mutex_);
  --running_;
  --outstanding_;
  idle_.notify_all();
}

void Executor::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  idle_.wait(lock, [&] { return running_ == 0; });
}

}  // namespace anyccl::torch
