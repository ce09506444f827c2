#pragma once
// Threads for the end of operations that no thread waits for: copies into tensors, futures and
// the callbacks of programs, the release of tensors (which may take the GIL).

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace anyccl::torch {

/// Runs tasks in up to kPlenty threads, and in more, up to kMost, where all of them are stuck for
/// some milliseconds, as a callback may wait for a second operation. Idle threads end after a
/// while. The threads own all that they use, so they need no join.
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
  static constexpr std::size_t kPlenty = 4, kMost = 64;
  static constexpr std::chrono::seconds kLinger{2};
  bool start_locked() noexcept;
  /// Runs tasks until there are none for a while; `spare`: only once all other threads are stuck.
  void run_tasks(bool spare);
  bool wait_until_stuck(std::unique_lock<std::mutex>& lock);
  void run_and_release(std::function<void()> task) noexcept;

  std::mutex mutex_;                             // of everything below
  std::condition_variable more_, stuck_, idle_;  // stuck_: for the spare thread
  std::deque<std::function<void()>> tasks_;
  std::size_t outstanding_ = 0, running_ = 0, threads_ = 0, idle_threads_ = 0;
  std::uint64_t finished_ = 0;  // tasks
  bool has_spare_ = false;      // a thread beyond kPlenty watches whether the others are stuck
  bool stopped_ = false;
};

}  // namespace anyccl::torch
