#pragma once
// One thread at a time makes progress on a communicator: it holds this lock, which ProgressLoop
// gives it.

#include <atomic>

namespace anyccl {

/// The right to make progress on a communicator. One read-modify-write on a line that stays in this
/// core's cache.
class ProgressLock {
 public:
  explicit ProgressLock(std::atomic<bool>& word) : word_(word) {}
  ~ProgressLock() { unlock(); }
  ProgressLock(const ProgressLock&) = delete;
  ProgressLock& operator=(const ProgressLock&) = delete;
  bool try_lock() { return held_ = !word_.exchange(true, std::memory_order_acquire); }
  bool owns_lock() const { return held_; }
  /// Wakes nobody. Nothing happens if it is not held.
  void unlock() {
    if (held_) word_.store(false, std::memory_order_release);
    held_ = false;
  }
  /// Nobody makes progress any more.
  void keep_locked() { held_ = false; }

 private:
  std::atomic<bool>& word_;
  bool held_ = false;
};

}  // namespace anyccl
