#pragma once
// The recorder of calls (framework/call/recorder.hpp) takes its times from a TickClock.

#include <chrono>
#include <cstdint>

namespace anyccl {

/// Times that are taken on hot paths and read much later, if ever: half the cost of a system clock
/// where the CPU has a counter that goes evenly. For reports only; limits and deadlines have
/// Deadline.
///
/// Threads: any.
class TickClock {
 public:
  TickClock() : has_counter_(counter_is_even()), first_ticks_(ticks()), first_ns_(monotonic_ns()) {}

  /// Now, in ticks of the counter, or in nanoseconds where there is none; see Scale.
  std::uint64_t ticks() const {
#if defined(__x86_64__)
    if (has_counter_) return __builtin_ia32_rdtsc();  // <x86intrin.h> is 45,000 lines
#endif
    return static_cast<std::uint64_t>(monotonic_ns());
  }

  /// The time of CLOCK_MONOTONIC at times of ticks(), as far as the time since the constructor
  /// says.
  class Scale {
   public:
    std::int64_t ns_at(std::uint64_t ticks) const {
      return first_ns_ + static_cast<std::int64_t>(
                             ns_per_tick_ *
                             static_cast<double>(static_cast<std::int64_t>(ticks - first_ticks_)));
    }

    std::int64_t ns_of(std::uint64_t ticks) const {
      return static_cast<std::int64_t>(ns_per_tick_ * static_cast<double>(ticks));
    }

   private:
    friend class TickClock;
    std::uint64_t first_ticks_ = 0;
    std::int64_t first_ns_ = 0;
    double ns_per_tick_ = 0;
  };
  Scale scale() const {
    const std::uint64_t ticks = this->ticks();
    Scale scale;
    scale.first_ticks_ = first_ticks_;
    scale.first_ns_ = first_ns_;
    if (ticks != first_ticks_)
      scale.ns_per_tick_ = static_cast<double>(monotonic_ns() - first_ns_) /
                           static_cast<double>(ticks - first_ticks_);
    return scale;
  }

  static std::int64_t monotonic_ns() {
    return ns_of(std::chrono::steady_clock::now());
  }
  /// What is to be added to CLOCK_MONOTONIC for the real time.
  static std::int64_t real_offset_ns() {
    return ns_of(std::chrono::system_clock::now()) - monotonic_ns();
  }

 private:
  template <typename Time>
  static std::int64_t ns_of(Time time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  }
  /// Whether the CPU counts at one rate, whatever its own clock does.
  static bool counter_is_even();

  bool has_counter_;
  std::uint64_t first_ticks_;
  std::int64_t first_ns_;
};

}  // namespace anyccl
