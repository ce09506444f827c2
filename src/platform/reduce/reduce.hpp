#pragma once
// Collectives look up here the kernels that reduce elements of their type by their operator. The
// kernels themselves, and what they do, are in kernels.hpp.

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// The kernel for these elements, the best for this CPU: choose it once, call it often. What it
/// does is said at ReduceFn.
///
/// Errors: unsupported (an op that makes no sense for dtype, avg, or a CPU older than x86-64-v2).
Result<ReduceFn> reduce_kernel(DType dtype, ReduceOp op);

/// The second kernel of an average, after that of sum: once all sources are added up, in any number
/// of steps, it divides each element of the result by their number.
///
/// Errors: unsupported (bool, or a CPU older than x86-64-v2).
Result<DivideFn> divide_kernel(DType dtype);

/// dst[i] = src[i] != 0, as a number of the type: what a logical operator makes of one source,
/// which no kernel of it has seen. Nothing is divided.
///
/// Errors: as reduce_kernel() of land.
Result<DivideFn> truth_kernel(DType dtype);

}  // namespace anyccl
