#pragma once
// Holds a thread up until the test lets it go on.

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace anyccl::test {

class Door {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  /// Returns when it is open; false after `seconds`.
  bool pass(int seconds = 60) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(seconds), [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

}  // namespace anyccl::test
