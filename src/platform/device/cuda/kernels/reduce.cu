// The kernels that reduce elements of one type, ANYCCL_TYPE. clang compiles it without anything
// of CUDA.

#define ANYCCL_ON_DEVICE __attribute__((device))

#include "platform/device/cuda/kernels/reduce.hpp"

namespace anyccl::kernels {

template <typename Type, typename Operator>
ANYCCL_ON_DEVICE inline void reduce_by_grid(const ReduceArgs& args) {
  const U64 threads = __nvvm_read_ptx_sreg_ntid_x();
  reduce<Type, Operator>(args,
                         __nvvm_read_ptx_sreg_ctaid_x() * threads + __nvvm_read_ptx_sreg_tid_x(),
                         __nvvm_read_ptx_sreg_nctaid_x() * threads);
}

}  // namespace anyccl::kernels

#define ANYCCL_JOIN(a, b) a##b
#define ANYCCL_KERNELS_OF(type) ANYCCL_JOIN(ANYCCL_KERNELS_, type)
#define ANYCCL_KERNEL(type, Type, op, Operator)                                                    \
  extern "C" __attribute__((global)) void anyccl_##op##_##type(anyccl::kernels::ReduceArgs args) { \
    anyccl::kernels::reduce_by_grid<Type, anyccl::kernels::Operator>(args);                        \
  }

ANYCCL_KERNELS_OF(ANYCCL_TYPE)(ANYCCL_KERNEL)
