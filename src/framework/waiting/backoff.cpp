#include "framework/waiting/backoff.hpp"

#include "base/cpu.hpp"

namespace anyccl {
namespace {

using namespace std::chrono_literals;
constexpr auto kSpin = 200us;      // then others may have the core
constexpr auto kAwake = 2ms;       // then sleep: a wake-up costs tens of microseconds
constexpr auto kCheckEvery = 1ms;  // looking for failures costs system calls
constexpr std::uint64_t kPollsPerClock = 256, kYieldsPerClock = 16;  // at the clock
// Before a wait on a contended host sleeps; fewer with more ranks than cores.
constexpr std::uint64_t kLooks = 64, kLooksOfMany = 2;

}  // namespace

Backoff::Next Backoff::next() {
  if (contention_.is_noticed()) return next_on_contended_host();
  const bool yields = oversubscribed_ || phase_ != Phase::spin;
  if (yields)
    contention_.yield();
  else
    relax();
  if (++polls_ % (yields ? kYieldsPerClock : kPollsPerClock) != 0 && phase_ != Phase::sleep)
    return Next::poll;
  const auto now = Clock::now();
  if (polls_ <= kPollsPerClock) {
    since_ = checked_ = looked_ = now;
    return Next::poll;
  }
  if (!yields && now - looked_ > contention_.kPreempted) contention_.note_preemption(now);
  looked_ = now;
  if (now - since_ > kSpin) phase_ = Phase::yield;
  if (now - since_ > kAwake) phase_ = Phase::sleep;
  if (phase_ == Phase::sleep) return ++sleeps_, Next::sleep;
  if (now - checked_ < kCheckEvery) return Next::poll;
  checked_ = now;
  return Next::check;
}

/// Neither spins for long nor yields: both cost a time slice.
Backoff::Next Backoff::next_on_contended_host() {
  if (++polls_ < (oversubscribed_ ? kLooksOfMany : kLooks)) {
    relax();
    return Next::poll;
  }
  const auto now = Clock::now();
  since_ = looked_ = now;  // in case that it spins from now on
  contention_.expire(now);
  if (checked_ == Clock::time_point()) checked_ = now;
  if (now - checked_ < kCheckEvery) return Next::doze;
  checked_ = now;
  return ++sleeps_, Next::sleep;
}

}  // namespace anyccl
