#pragma once
// The rest of a time limit.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace anyccl::torch {

using Clock = std::chrono::steady_clock;

/// When so much time has passed; never, if the clock does not go so far.
inline Clock::time_point after(std::chrono::milliseconds time) {
  const auto now = Clock::now();
  const auto most =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - now);
  return time >= most ? Clock::time_point::max() : now + time;
}

/// Until `deadline`; at least `least`.
inline std::chrono::milliseconds left(Clock::time_point deadline, std::chrono::milliseconds least) {
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()),
                  least);
}
/// In the library's form, for which 0 is no limit.
inline unsigned int limit_of(std::chrono::milliseconds time) {
  return static_cast<unsigned int>(
      std::clamp<std::int64_t>(time.count(), 1, std::numeric_limits<unsigned int>::max()));
}

}  // namespace anyccl::torch
