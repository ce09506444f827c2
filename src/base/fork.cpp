#include "base/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace anyccl {
namespace {

std::atomic<std::uint64_t> generation{0};  // constant-initialised; changed only by fork

}  // namespace

std::uint64_t fork_generation() {
  static const int watching = ::pthread_atfork(
      nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(watching);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace anyccl
