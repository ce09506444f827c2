#include "executor.hpp"

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

void Executor::submit_expected(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() <= sleepers_)
    more_.notify_one();
  else
    std::thread([self = shared_from_this()] { self->work(); }).detach();
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
      if (tasks_.empty()) return;
    }
    {
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();  // does not throw
      task = nullptr;
      lock.lock();
    }
    if (--outstanding_ == 0) idle_.notify_all();
  }
}

}  // namespace anyccl::torch
