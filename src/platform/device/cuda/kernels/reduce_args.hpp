#pragma once
// What kernels are given. It includes nothing, as kernels do not.

namespace anyccl::kernels {

/// dst[i] = src[0][i] op src[1][i] op ..., i < count; an average is a sum, divided by `divisor`.
struct ReduceArgs {
  static constexpr unsigned kMostSources = 8;
  void* dst;
  const void* src[kMostSources];
  unsigned sources, divisor;
  unsigned long long count;
};

/// With the numbers of ReduceOp.
enum class Op : unsigned char { sum, prod, max, min, avg, land, lor, lxor, band, bor, bxor };

/// See Device::exchange(). The blocks of the ranks, in `to`, are the sources of dst[i], as above.
struct ExchangeArgs {
  static constexpr int kThreads = 512;                  // the grid is one block of them
  unsigned long long* lines[ReduceArgs::kMostSources];  // by rank
  const unsigned* stop;
  const void* input;
  void *to, *dst;
  unsigned bytes, words;   // of the input, and how many are published
  unsigned offset, block;  // bytes
  unsigned number, digest;
  unsigned me, sources, divisor, count;
  Op op;
};

}  // namespace anyccl::kernels
