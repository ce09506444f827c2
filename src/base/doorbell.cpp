#include "base/doorbell.hpp"

#include <climits>

#include "base/futex.hpp"

namespace anyccl {

void Doorbell::sleep_unless_rung(std::uint32_t since, std::chrono::nanoseconds most) {
  futex_wait(rings_, since, most, FutexScope::process);
}

void Doorbell::ring_sleepers() {
  rings_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in sleep_while()
  futex_wake(rings_, INT_MAX, FutexScope::process);
}

}  // namespace anyccl
