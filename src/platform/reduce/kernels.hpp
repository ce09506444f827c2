#pragma once
// What one compilation of kernels.cpp exports. Included by code built for newer CPUs than the rest,
// so it must not bring in anything with inline functions: the linker might keep that copy for all.

#include <cstddef>

#include "anyccl/types.hpp"

namespace anyccl {

/// dst[i] = src[0][i] op src[1][i] op ..., in that order; elements of bf16 are added in fp32 and
/// rounded once, to nearest even. One source: a copy. If `also` is not null, the result goes there
/// too.
///
/// Shapes: `count` elements in each; sources >= 1. Any alignment. `dst` may be any of the sources;
///         there is no other overlap.
/// Result: the same bits on every CPU, whatever floating-point mode the caller has set. Sums of
///         integers wrap. max orders -0 < +0 and is NaN if any source is. A NaN that was computed
///         is the positive quiet one without payload.
/// Threads: any.
using ReduceFn = void (*)(void* dst, void* also, const void* const* src, std::size_t sources,
                          std::size_t count);

struct Kernel {
  DType dtype;
  ReduceOp op;
  ReduceFn run;
};

/// The kernels for one instruction set.
struct KernelTable {
  const Kernel* first;
  std::size_t count;
};

}  // namespace anyccl
