#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace anyccl {

/// Threads sleep shortly, or until it is rung. Unlike a condition variable it may be destroyed in a
/// forked child while threads of the parent sleep.
class Doorbell {
 public:
  /// At most `most`, less than a second. A ring at the very moment it begins may be missed.
  void sleep(std::chrono::nanoseconds most);
  void ring() {
    if (sleepers_.load(std::memory_order_relaxed) > 0) ring_sleepers();
  }

 private:
  void ring_sleepers();

  std::atomic<std::uint32_t> rings_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace anyccl
