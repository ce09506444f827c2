#include "base/tick_clock.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace anyccl {

bool TickClock::counter_is_even() {
#if defined(__x86_64__)
  static const bool is_even = [] {  // virtual machines take microseconds for the answer
    constexpr unsigned kPowerLeaf = 0x80000007, kInvariantCounter = 1U << 8;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(kPowerLeaf, &a, &b, &c, &d) != 0 && (d & kInvariantCounter) != 0;
  }();
  return is_even;
#else
  return false;
#endif
}

}  // namespace anyccl
