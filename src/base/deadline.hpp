#pragma once
// A deadline bounds a wait. Whatever creates communicators, connects ranks or waits for messages of
// control gets one from its caller.

#include <algorithm>
#include <chrono>
#include <compare>

namespace anyccl {

/// A point on CLOCK_MONOTONIC until which something may take, passed through connect, waits and
/// sockets. Default: never.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  Deadline() = default;
  /// Never, if the clock does not go so far.
  template <typename Number, typename Unit>
  static Deadline in(std::chrono::duration<Number, Unit> time) {
    using Seconds = std::chrono::duration<double>;
    const auto now = Clock::now();
    if (Seconds(time) >= Seconds(Clock::time_point::max() - now)) return never();
    return Deadline(now + std::chrono::duration_cast<Clock::duration>(time));
  }
  static Deadline never() { return {}; }

  auto operator<=>(const Deadline&) const = default;
  bool is_never() const { return at_ == Clock::time_point::max(); }
  bool passed() const { return !is_never() && Clock::now() >= at_; }
  /// Milliseconds for poll(2): 0 when passed, else rounded up, at most `most`.
  int poll_ms(int most = 1000) const {
    if (is_never()) return most;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return left <= 0 ? 0 : left < most ? static_cast<int>(left) : most;
  }
  /// The time limit of an operation that ends with it, at least a millisecond, and at most a day.
  std::chrono::milliseconds operation_limit() const {
    constexpr int kDay = 24 * 3600 * 1000;
    return std::chrono::milliseconds(std::max(1, poll_ms(kDay)));
  }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_ = Clock::time_point::max();
};

}  // namespace anyccl
