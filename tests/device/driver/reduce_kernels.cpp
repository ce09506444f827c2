// The kernels of the library that reduce, compiled for this driver.

#include "kernel.hpp"
#include "platform/device/cuda/kernels/reduce.hpp"

namespace anyccl::kernels {
namespace {

/// Returns the places of the vectors; `dst` is null if one of them is none of a device's.
template <typename Bits>
ReduceArgs place(ReduceArgs args) {
  const std::size_t bytes = args.count * sizeof(Bits);
  args.dst = ANYCCL_PLACE(void, args.dst, bytes, 1);
  for (U32 k = 0; k < args.sources; ++k) {
    args.src[k] = ANYCCL_PLACE(const void, args.src[k], bytes, 0);
    if (args.src[k] == nullptr) args.dst = nullptr;
  }
  return args;
}

template <typename Type, typename Operator>
void reduce_by_grid(ReduceArgs args) {
  args = place<typename Type::Bits>(args);
  if (args.dst != nullptr) reduce<Type, Operator>(args, blockIdx.x, gridDim.x);
}

}  // namespace
}  // namespace anyccl::kernels

#define ANYCCL_REDUCE(type, Type, op, Operator)                    \
  ANYCCL_KERNEL(anyccl_##op##_##type, anyccl::kernels::ReduceArgs, \
                (anyccl::kernels::reduce_by_grid<Type, anyccl::kernels::Operator>))

ANYCCL_KERNELS_i8(ANYCCL_REDUCE) ANYCCL_KERNELS_u8(ANYCCL_REDUCE) ANYCCL_KERNELS_i32(ANYCCL_REDUCE)
    ANYCCL_KERNELS_u32(ANYCCL_REDUCE) ANYCCL_KERNELS_i64(ANYCCL_REDUCE)
        ANYCCL_KERNELS_u64(ANYCCL_REDUCE) ANYCCL_KERNELS_f16(ANYCCL_REDUCE)
            ANYCCL_KERNELS_f32(ANYCCL_REDUCE) ANYCCL_KERNELS_f64(ANYCCL_REDUCE)
                ANYCCL_KERNELS_bf16(ANYCCL_REDUCE) ANYCCL_KERNELS_f8e4m3(ANYCCL_REDUCE)
                    ANYCCL_KERNELS_f8e5m2(ANYCCL_REDUCE) ANYCCL_KERNELS_i16(ANYCCL_REDUCE)
                        ANYCCL_KERNELS_u16(ANYCCL_REDUCE) ANYCCL_KERNELS_bool(ANYCCL_REDUCE)
                            ANYCCL_KERNELS_complex64(ANYCCL_REDUCE)
                                ANYCCL_KERNELS_complex128(ANYCCL_REDUCE)
