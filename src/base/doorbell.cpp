#include "base/doorbell.hpp"

#include <climits>

#include "base/futex.hpp"

namespace anyccl {

void Doorbell::sleep(std::chrono::nanoseconds most) {
  const std::uint32_t before = rings_.load(std::memory_order_acquire);
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  futex_wait(rings_, before, most, FutexScope::process);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Doorbell::ring_sleepers() {
  rings_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in sleep()
  futex_wake(rings_, INT_MAX, FutexScope::process);
}

}  // namespace anyccl
