// Kernels that tests launch.

#include "device/kernels.hpp"

#include "device/driver/kernel.hpp"

namespace anyccl::test {
namespace {

void add(AddArgs args) {
  const std::size_t bytes = args.count * sizeof(float);
  const float* const left = ANYCCL_PLACE(const float, args.left, bytes, 0);
  const float* const right = ANYCCL_PLACE(const float, args.right, bytes, 0);
  float* const sum = ANYCCL_PLACE(float, args.sum, bytes, 1);
  if (left == nullptr || right == nullptr || sum == nullptr) return;
  for (std::size_t i = blockIdx.x; i < args.count; i += gridDim.x) sum[i] = left[i] + right[i];
}

}  // namespace
}  // namespace anyccl::test

ANYCCL_KERNEL(test_add, anyccl::test::AddArgs, anyccl::test::add)
