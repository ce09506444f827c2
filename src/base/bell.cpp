#include "base/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace anyccl {

void Bell::sleep(std::chrono::nanoseconds most) {
  const std::uint32_t before = rings_.load(std::memory_order_acquire);
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  const timespec limit{0, static_cast<long>(most.count())};
  ::syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, before, &limit, nullptr, 0);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Bell::ring_sleepers() {
  rings_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in sleep()
  ::syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace anyccl
