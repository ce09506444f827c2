#include "framework/waiter.hpp"

#include <sched.h>

#include "base/cpu.hpp"

namespace anyccl {
namespace {

using namespace std::chrono_literals;
constexpr auto kSpin = 200us;      // then others may have the core
constexpr auto kAwake = 2ms;       // then sleep: a wake-up costs tens of microseconds
constexpr auto kCheckEvery = 1ms;  // looking for trouble costs system calls
constexpr std::uint64_t kPollsPerLook = 256, kYieldsPerLook = 16;  // at the clock

}  // namespace

Waiter::Next Waiter::next() {
  const bool yields = crowded_ || phase_ != Phase::spin;
  if (yields)
    ::sched_yield();
  else
    relax();
  if (++polls_ % (yields ? kYieldsPerLook : kPollsPerLook) != 0 && phase_ != Phase::sleep)
    return Next::poll;
  const auto now = Clock::now();
  if (polls_ <= kPollsPerLook) {
    since_ = checked_ = now;
    return Next::poll;
  }
  if (now - since_ > kSpin) phase_ = Phase::yield;
  if (now - since_ > kAwake) phase_ = Phase::sleep;
  if (phase_ == Phase::sleep) return ++naps_, Next::sleep;
  if (now - checked_ < kCheckEvery) return Next::poll;
  checked_ = now;
  return Next::check;
}

}  // namespace anyccl
