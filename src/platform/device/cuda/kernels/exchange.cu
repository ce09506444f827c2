// The kernels that exchange small data with other ranks, and reduce it, of one type, ANYCCL_TYPE.
// clang compiles it without anything of CUDA.

#define ANYCCL_ON_DEVICE __attribute__((device))

#include "platform/device/cuda/kernels/exchange.hpp"

namespace anyccl::kernels {

/// Lines and words of the host's memory, of which a device must not keep copies.
struct HostMemory {
  ANYCCL_ON_DEVICE static U64 load(const U64* line) {
    return *static_cast<const volatile U64*>(line);
  }
  ANYCCL_ON_DEVICE static void store(U64* line, U64 value) {
    *static_cast<volatile U64*>(line) = value;
  }
  ANYCCL_ON_DEVICE static bool is_over(const U32* stop) {
    return *static_cast<const volatile U32*>(stop) != 0;
  }
};

ANYCCL_ON_DEVICE inline void meet_threads() {
  asm volatile("bar.sync 0;" ::: "memory");
}

}  // namespace anyccl::kernels

#define ANYCCL_REDUCE_BLOCKS_OF(type) ANYCCL_REDUCE_BLOCKS(type)
ANYCCL_REDUCE_BLOCKS_OF(ANYCCL_TYPE)

// The grid is one block of threads.
#define ANYCCL_JOIN(a, b) a##b
#define ANYCCL_KERNEL(type)                                                                       \
  extern "C" __attribute__((global, launch_bounds(anyccl::kernels::ExchangeArgs::kThreads))) void \
  ANYCCL_JOIN(anyccl_exchange_, type)(anyccl::kernels::ExchangeArgs args) {                       \
    using namespace anyccl::kernels;                                                              \
    const U32 first = __nvvm_read_ptx_sreg_tid_x();                                               \
    const U32 step = __nvvm_read_ptx_sreg_ntid_x();                                               \
    publish<HostMemory>(args, first, step);                                                       \
    meet_threads();                                                                               \
    take<HostMemory>(args, first, step);                                                          \
    meet_threads();                                                                               \
    ANYCCL_JOIN(reduce_blocks_, type)(args, first, step);                                         \
  }
ANYCCL_KERNEL(ANYCCL_TYPE)
