#include "base/fences.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace anyccl {
namespace {

std::atomic<std::uint64_t> fences{0};

}  // namespace

bool join_fences() {
  static const bool joined =
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return joined;
}

void fence_all() {
  fences.fetch_add(1, std::memory_order_relaxed);
  ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

std::uint64_t count_fences() {
  return fences.load(std::memory_order_relaxed);
}

}  // namespace anyccl
