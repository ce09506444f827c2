#pragma once
// A doorbell wakes threads that wait for other threads of this process: those that wait for the
// progress or the order of calls of a communicator. platform/link/doorbell.hpp serves threads that
// wait for sockets.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace anyccl {

/// Threads sleep shortly, or until it is rung. Unlike a condition variable it may be destroyed in a
/// forked child while threads of the parent sleep.
class Doorbell {
 public:
  /// At most `most`, less than a second. A ring at the very moment it begins may be missed.
  void sleep(std::chrono::nanoseconds most) {
    sleep_while([] { return true; }, most);
  }
  /// Looks at `holds()` once and, if it is true, sleeps until a ring or for `most`. No ring is
  /// missed: a thread that changes what it looks at (seq_cst, both) and then rings ends the sleep.
  template <typename Condition>
  void sleep_while(const Condition& holds, std::chrono::nanoseconds most) {
    const std::uint32_t before = rings_.load(std::memory_order_acquire);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);  // either holds() or ring() sees the other's
    if (holds()) sleep_unless_rung(before, most);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  void ring() {
    if (sleepers_.load(std::memory_order_seq_cst) > 0) ring_sleepers();
  }

 private:
  void sleep_unless_rung(std::uint32_t since, std::chrono::nanoseconds most);
  void ring_sleepers();

  std::atomic<std::uint32_t> rings_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace anyccl
