#pragma once
// What a kernel that reduces is given. It includes nothing, as kernels do not.

namespace anyccl::kernels {

/// dst[i] = src[0][i] op src[1][i] op ..., i < count; an average is a sum, divided by `divisor`.
struct ReduceArgs {
  static constexpr unsigned kMostSources = 8;
  void* dst;
  const void* src[kMostSources];
  unsigned sources, divisor;
  unsigned long long count;
};

}  // namespace anyccl::kernels
