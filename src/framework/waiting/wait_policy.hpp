#pragma once
// A communicator learns here how long its waits take, and so when a thread should spin, yield or
// sleep. Backoff asks.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/config.hpp"

namespace anyccl {

/// What a thread does that has waited for a while.
struct WaitStep {
  enum class How : std::uint8_t { spin, yield, sleep };
  How how = How::spin;
  /// For a sleep, the time until the awaited thing is about to come; 0: nothing is known about
  /// that.
  std::chrono::nanoseconds until_expected{0};
};

/// How long the waits of one kind of operation took lately: mean and deviation, as TCP estimates
/// its round trips (Jacobson, "Congestion Avoidance and Control", 1988).
///
/// Programs call the same operation once per step, so a wait often ends when the ones before it
/// did. Any thread; what two threads learn at once may be lost.
class Cadence {
 public:
  using Duration = std::chrono::nanoseconds;

  void learn(Duration wait);
  /// `oversleep`: how late a timed sleep ends.
  WaitStep step(Duration waited, Duration oversleep) const;

 private:
  friend class WaitPolicy;
  void restart(std::uint32_t kind);

  std::atomic<std::uint32_t> kind_{0}, waits_{0};
  std::atomic<bool> different_{false};  // the last one was, see learn()
  std::atomic<Duration::rep> mean_{0}, deviation_{0};
};

/// When the threads of a communicator spin, yield and sleep, on a host that is theirs. Any thread.
class WaitPolicy {
 public:
  explicit WaitPolicy(WaitMode mode = WaitMode::balanced) : mode_(mode) {}

  using Duration = Cadence::Duration;
  WaitMode mode() const { return mode_; }
  /// What a thread does that has waited for so long, for an operation of this kind; 0: of no kind.
  WaitStep step(std::uint32_t kind, Duration waited) const;
  /// Such a wait is over. `slept`: until it was woken. Nothing is learned of kind 0, nor of a
  /// short wait.
  void learn(std::uint32_t kind, Duration wait, bool slept);
  /// A timed sleep ended so late. For all communicators of the process.
  static void note_oversleep(Duration late);

 private:
  std::size_t place_of(std::uint32_t kind) const {
    return (kind * 0x9e3779b1u) >> 28;  // Fibonacci hashing: the upper 4 bits
  }

  WaitMode mode_;
  std::array<Cadence, 16> cadences_;
};

}  // namespace anyccl
