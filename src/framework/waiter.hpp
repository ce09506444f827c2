#pragma once

#include <chrono>
#include <cstdint>

namespace anyccl {

/// How a thread waits: spins while nobody else needs the core, then yields, then sleeps. One per
/// wait.
class Waiter {
 public:
  /// `crowded`: more threads of the job wait on this host than it has cores, so it yields at once.
  explicit Waiter(bool crowded) : crowded_(crowded) {}

  enum class Next {
    poll,   ///< Just look again.
    check,  ///< Look for trouble first: peers that failed or called something else.
    sleep,  ///< Look for trouble, then sleep at most nap().
  };
  /// Called after each look that found nothing; spins or yields itself.
  Next next();
  /// Something moved: start over.
  void reset() {
    polls_ = 0;
    naps_ = 0;
    phase_ = Phase::spin;
  }
  /// How long to sleep: longer after some naps, where no wake-up is missed. What wakes nobody, such
  /// as a peer's death, is seen so late.
  std::chrono::nanoseconds nap() const { return naps_ > kNaps ? kLongNap : kNap; }
  static constexpr std::chrono::milliseconds kNap{1}, kLongNap{20};

 private:
  enum class Phase { spin, yield, sleep };
  using Clock = std::chrono::steady_clock;

  bool crowded_;
  Phase phase_ = Phase::spin;
  static constexpr int kNaps = 10;
  std::uint64_t polls_ = 0;
  int naps_ = 0;
  Clock::time_point since_, checked_;
};

}  // namespace anyccl
