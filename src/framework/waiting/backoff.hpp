#pragma once

#include <chrono>
#include <cstdint>

namespace anyccl {

/// How a thread waits: spins while nobody else needs the core, then yields, then sleeps. One per
/// wait.
class Backoff {
 public:
  /// `oversubscribed`: more threads of the job wait on this host than it has cores, so it yields at
  /// once.
  explicit Backoff(bool oversubscribed) : oversubscribed_(oversubscribed) {}

  enum class Next {
    poll,   ///< Just look again.
    check,  ///< Look for failures first: peers that failed or called something else.
    sleep,  ///< Look for failures, then sleep at most sleep_time().
  };
  /// Called after each look that found nothing; spins or yields itself.
  Next next();
  /// Something moved: start over.
  void reset() {
    polls_ = 0;
    sleeps_ = 0;
    phase_ = Phase::spin;
  }
  /// How long to sleep: longer after some sleeps, where no wake-up is missed. What wakes nobody,
  /// such as a peer's death, is seen so late.
  std::chrono::nanoseconds sleep_time() const {
    return sleeps_ > kShortSleeps ? kLongSleep : kSleep;
  }
  static constexpr std::chrono::milliseconds kSleep{1}, kLongSleep{20};

 private:
  enum class Phase { spin, yield, sleep };
  using Clock = std::chrono::steady_clock;

  bool oversubscribed_;
  Phase phase_ = Phase::spin;
  static constexpr int kShortSleeps = 10;
  std::uint64_t polls_ = 0;
  int sleeps_ = 0;
  Clock::time_point since_, checked_;
};

}  // namespace anyccl
