#include "base/fences.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace anyccl {

bool join_fences() {
  // Not guarded: a forked child would wait for a thread of its parent that was here.
  static constinit std::atomic<int> joined{-1};
  int known = joined.load(std::memory_order_relaxed);
  if (known < 0) {
    known = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 ? 1 : 0;
    joined.store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

void fence_all() {
  ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

}  // namespace anyccl
