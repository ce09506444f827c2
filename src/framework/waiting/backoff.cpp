#include "framework/waiting/backoff.hpp"

#include <algorithm>

#include "base/cpu.hpp"

namespace anyccl {
namespace {

using namespace std::chrono_literals;
constexpr auto kCheckEvery =
    1ms;  // looking for failures costs system calls, so many ranks do it less often
constexpr std::uint64_t kPollsPerClock = 64, kYieldsPerClock = 16;  // at the clock
// Before a wait on a contended host sleeps; fewer with more ranks than cores.
constexpr std::uint64_t kLooks = 64, kLooksOfMany = 2;
constexpr int kShortSleeps = 10;

}  // namespace

Backoff::Next Backoff::next() {
  if (contention_.is_noticed() && policy_.mode() != WaitMode::latency)
    return next_on_contended_host();
  const bool yields = oversubscribed_ || how_ != How::spin;
  if (yields)
    contention_.yield();
  else
    relax();
  if (++polls_ % (yields ? kYieldsPerClock : kPollsPerClock) != 0 && how_ != How::sleep)
    return Next::poll;
  const auto now = Clock::now();
  if (polls_ <= kPollsPerClock) {
    since_ = checked_ = looked_ = now;
    measured_ = true;
    return Next::poll;
  }
  if (!yields && now - looked_ > contention_.kPreempted) contention_.note_preemption(now);
  looked_ = now;
  if (now >= alarm_) policy_.note_oversleep(now - alarm_);
  alarm_ = Clock::time_point::max();
  // The policy knows waits of ranks that have a core: a turn of many takes as many times longer.
  const WaitStep step = policy_.step(kind_, (now - since_) / crowding_);
  how_ = step.how;
  if (how_ == How::sleep) return next_timed_sleep(step, now);
  if (now - checked_ < std::min<Clock::duration>(crowding_ * kCheckEvery, kLongSleep))
    return Next::poll;
  checked_ = now;
  return Next::check;
}

Backoff::Next Backoff::next_timed_sleep(const WaitStep& step, Clock::time_point now) {
  if (step.until_expected == 0ns) return next_untimed_sleep();
  sleep_time_ = std::min<std::chrono::nanoseconds>(crowding_ * step.until_expected, kLongSleep);
  alarm_ = now + sleep_time_;
  return Next::sleep;
}

/// Says to sleep, after some times for longer: nothing is known about the end of the wait.
Backoff::Next Backoff::next_untimed_sleep() {
  sleep_time_ = ++sleeps_ > kShortSleeps ? kLongSleep : kSleep;
  return Next::sleep;
}

/// Neither spins for long nor yields: both cost a time slice.
Backoff::Next Backoff::next_on_contended_host() {
  if (++polls_ < (oversubscribed_ ? kLooksOfMany : kLooks)) {
    relax();
    return Next::poll;
  }
  const auto now = Clock::now();
  since_ = looked_ = now;  // in case that it spins from now on
  measured_ = false;
  alarm_ = Clock::time_point::max();
  contention_.expire(now);
  if (checked_ == Clock::time_point()) checked_ = now;
  if (now - checked_ < kCheckEvery) return Next::doze;
  checked_ = now;
  return next_untimed_sleep();
}

/// The wait is over.
void Backoff::learn() {
  policy_.learn(kind_, (Clock::now() - since_) / crowding_, how_ == How::sleep);
  measured_ = false;
}

}  // namespace anyccl
