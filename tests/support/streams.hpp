#pragma once
// What tests of streams need.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {

inline Stream new_stream() {
  auto made = Stream::create();
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}
inline Event new_event() {
  auto made = Event::create();
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

/// Work that takes at least `time`.
inline auto busy_for(std::chrono::milliseconds time) {
  return [time] {
    const auto since = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - since < time) std::this_thread::yield();
  };
}

/// Holds a thread up until the test lets it go on.
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
