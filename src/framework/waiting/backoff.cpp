#include "framework/waiting/backoff.hpp"

#include <sched.h>

#include "base/cpu.hpp"

namespace anyccl {
namespace {

using namespace std::chrono_literals;
constexpr auto kSpin = 200us;      // then others may have the core
constexpr auto kAwake = 2ms;       // then sleep: a wake-up costs tens of microseconds
constexpr auto kCheckEvery = 1ms;  // looking for failures costs system calls
constexpr std::uint64_t kPollsPerClock = 256, kYieldsPerClock = 16;  // at the clock

}  // namespace

Backoff::Next Backoff::next() {
  const bool yields = oversubscribed_ || phase_ != Phase::spin;
  if (yields)
    ::sched_yield();
  else
    relax();
  if (++polls_ % (yields ? kYieldsPerClock : kPollsPerClock) != 0 && phase_ != Phase::sleep)
    return Next::poll;
  const auto now = Clock::now();
  if (polls_ <= kPollsPerClock) {
    since_ = checked_ = looked_ = now;
    return Next::poll;
  }
  if (!yields && now - looked_ > monitor_.kPreempted) monitor_.note_preemption(now);
  looked_ = now;
  if (now - since_ > kSpin) phase_ = Phase::yield;
  if (now - since_ > kAwake) phase_ = Phase::sleep;
  if (phase_ == Phase::sleep) return ++sleeps_, Next::sleep;
  // Ranks that share cores hand them to each other: they yield.
  const bool contended = !oversubscribed_ && monitor_.is_contended(now);
  if (now - checked_ < kCheckEvery) return contended ? Next::doze : Next::poll;
  checked_ = now;
  return contended ? Next::sleep : Next::check;
}

}  // namespace anyccl
