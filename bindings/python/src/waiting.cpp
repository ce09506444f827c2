#include "waiting.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace anyccl::python {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t now_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

}  // namespace

unsigned milliseconds(Seconds seconds) {
  constexpr double kMost = 4'000'000;  // milliseconds are 32 bits
  if (!seconds) return 0;
  if (*seconds == HUGE_VAL) return ANYCCL_NO_TIMEOUT;
  if (!(*seconds > 0 && *seconds <= kMost))
    raise_invalid("timeout is " + std::to_string(*seconds) +
                  " s: it is more than 0 and at most 4000000, or None");
  return std::max(1U, static_cast<unsigned>(*seconds * 1000));
}

Countdown::Countdown(Seconds timeout) {
  if (timeout && !(*timeout >= 0))
    raise_invalid("timeout is " + std::to_string(*timeout) + " s: it is 0 or more, or None");
  constexpr double kForEver = 1e9;
  if (timeout && *timeout < kForEver)
    end_ns_ = now_ns() + static_cast<std::int64_t>(*timeout * 1e9);
}

bool Countdown::is_over() const {
  return end_ns_ && now_ns() >= *end_ns_;
}

unsigned Countdown::next_slice() const {
  if (!end_ns_) return kSignalTime;
  const std::int64_t left_ms = (*end_ns_ - now_ns() + 999'999) / 1'000'000;
  return static_cast<unsigned>(std::clamp<std::int64_t>(left_ms, 0, kSignalTime));
}

}  // namespace anyccl::python
