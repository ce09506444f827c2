#pragma once
// ProgressLoop asks a Backoff after each look that found nothing. It spins or yields, or says when
// to sleep and when to look for failures.

#include <chrono>
#include <cstdint>

#include "framework/waiting/wait_policy.hpp"
#include "platform/probe/oversubscription.hpp"

namespace anyccl {

/// The way a thread waits: it spins, then yields or sleeps, as the WaitPolicy says. One per wait.
///
/// A thread that spins or yields next to other programs uses up its share of the core, and then
/// waits for milliseconds at each hand-over. A thread that sleeps is let in as soon as it is woken.
/// So where waiting threads were preempted lately, they sleep after a few microseconds.
class Backoff {
 public:
  /// `oversubscribed`: more threads of the job wait on this host than it has cores, so it yields at
  /// once. `kind`: of what it waits for, see WaitPolicy.
  Backoff(probe::OversubscriptionMonitor& monitor, bool oversubscribed, WaitPolicy& policy,
          std::uint32_t kind)
      : contention_(monitor.contention()),
        policy_(policy),
        kind_(kind),
        oversubscribed_(oversubscribed),
        crowding_(oversubscribed ? monitor.crowding() : 1) {}

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
    if (measured_) learn();
    polls_ = 0;
    sleeps_ = 0;
    how_ = How::spin;
  }
  /// How long to sleep: longer after some sleeps, where no wake-up is missed. Events that wake
  /// nobody, such as a peer's death, are seen with this delay.
  std::chrono::nanoseconds sleep_time() const { return sleep_time_; }
  static constexpr std::chrono::milliseconds kSleep{1}, kLongSleep{20};

 private:
  using Clock = std::chrono::steady_clock;
  using How = WaitStep::How;
  Next next_on_contended_host();
  /// Says to sleep until what is awaited is about to come, if that is known.
  Next next_timed_sleep(const WaitStep& step, Clock::time_point now);
  Next next_untimed_sleep();
  void learn();

  probe::Contention& contention_;
  WaitPolicy& policy_;
  const std::uint32_t kind_;
  const bool oversubscribed_;
  const int crowding_;     // as OversubscriptionMonitor has it
  bool measured_ = false;  // since_ is when this wait began
  How how_ = How::spin;
  std::uint64_t polls_ = 0;
  int sleeps_ = 0;
  std::chrono::nanoseconds sleep_time_ = kSleep;
  Clock::time_point since_, checked_, looked_;
  Clock::time_point alarm_ = Clock::time_point::max();  // when the last sleep was to end
};

}  // namespace anyccl
