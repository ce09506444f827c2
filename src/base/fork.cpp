#include "base/fork.hpp"

#include <pthread.h>

namespace anyccl {

constinit std::atomic<std::uint64_t> detail::forks{0};

void watch_forks() {
  static const int watching = ::pthread_atfork(
      nullptr, nullptr, [] { detail::forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(watching);
}

}  // namespace anyccl
