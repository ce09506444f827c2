#pragma once

#include <chrono>
#include <cstdint>

#include "platform/probe/oversubscription.hpp"

namespace anyccl {

/// The way a thread waits: it spins, then yields, then sleeps. One per wait.
///
/// A thread that spins or yields next to other programs uses up its share of the core, and then
/// waits for milliseconds at each hand-over. A thread that sleeps is let in as soon as it is woken.
/// So where waiting threads were preempted lately, they sleep after a few microseconds.
class Backoff {
 public:
  /// `oversubscribed`: more threads of the job wait on this host than it has cores, so it yields at
  /// once.
  Backoff(probe::OversubscriptionMonitor& monitor, bool oversubscribed)
      : contention_(monitor.contention()), oversubscribed_(oversubscribed) {}

  enum class Next {
    poll,   ///< Just look again.
    doze,   ///< Sleep at most kSleep.
    check,  ///< Look for failures: peers that failed or called something else.
    sleep,  ///< Look for failures, then sleep at most sleep_time().
  };
  static bool checks(Next next) { return next == Next::check || next == Next::sleep; }
  static bool sleeps(Next next) { return next == Next::doze || next == Next::sleep; }
  /// Called after each look that found nothing; spins or yields itself.
  Next next();
  /// Something moved: start over.
  void reset() {
    polls_ = 0;
    sleeps_ = 0;
    phase_ = Phase::spin;
  }
  /// How long to sleep: longer after some sleeps, where no wake-up is missed. Events that wake
  /// nobody, such as a peer's death, are seen with this delay.
  std::chrono::nanoseconds sleep_time() const {
    return sleeps_ > kShortSleeps ? kLongSleep : kSleep;
  }
  static constexpr std::chrono::milliseconds kSleep{1}, kLongSleep{20};

 private:
  Next next_on_contended_host();

  enum class Phase { spin, yield, sleep };
  using Clock = std::chrono::steady_clock;
  probe::Contention& contention_;
  bool oversubscribed_;
  Phase phase_ = Phase::spin;
  static constexpr int kShortSleeps = 10;
  std::uint64_t polls_ = 0;
  int sleeps_ = 0;
  Clock::time_point since_, checked_, looked_;
};

}  // namespace anyccl
