#pragma once
// Threads for the end of operations that no thread waits for: copies into tensors, futures and
// the callbacks of programs, the release of tensors (which may take the GIL).

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace anyccl::torch {

/// Runs tasks, each at once: if all threads are busy another one is started, as a callback may
/// wait for a second operation. Idle threads end after a while. The threads own all that they use,
/// so they need no join.
class Executor : public std::enable_shared_from_this<Executor> {
 public:
  void submit(std::function<void()> task);
  /// A task will be submitted later: wait_idle() also waits for it.
  void expect();
  /// As submit(), for an expected task. If there is no memory or thread for it, it runs here.
  void submit_expected(std::function<void()> task) noexcept;
  /// True when no task is expected, waits or runs; false if that takes longer than `timeout`.
  bool wait_idle(std::chrono::milliseconds timeout);
  /// Waits for running tasks, however long they take; none runs after it.
  void stop();

 private:
  void work();
  void finish(std::function<void()> task) noexcept;

  std::mutex mutex_;  // of everything below
  std::condition_variable more_, idle_;
  std::deque<std::function<void()>> tasks_;
  std::size_t outstanding_ = 0, running_ = 0, threads_ = 0, sleepers_ = 0;
  bool stopped_ = false;
};

}  // namespace anyccl::torch
