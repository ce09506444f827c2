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
    if (tasks_.size() <= sleepers_) return more_.notify_one();
    try {
      std::thread([self = shared_from_this()] { self->work(); }).detach();
      ++threads_;
      return;
    } catch (...) {
      if (threads_ > 0) return;  // one of them will run it
      task = std::move(tasks_.back());
      tasks_.pop_back();
    }
  } catch (...) {
    // Out of memory: the task is still here.
  }
  finish(std::move(task));
}

bool Executor::wait_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [&] { return outstanding_ == 0; });
}

void Executor::work() {
  constexpr std::chrono::seconds kLinger{2};
  std::unique_lock lock(mutex_);
  for (;;) {
    if (tasks_.empty()) {
      ++sleepers_;
      more_.wait_for(lock, kLinger, [&] { return !tasks_.empty(); });
      --sleepers_;
      if (tasks_.empty()) {
        --threads_;
        return;
      }
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    finish(std::move(task));
    lock.lock();
  }
}

/// Runs the task, and releases its objects.
void Executor::finish(std::function<void()> task) noexcept {
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
