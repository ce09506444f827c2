#pragma once

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// The kernel for these elements, the best for this CPU: choose it once, call it often. What it
/// does is said at ReduceFn.
///
/// Errors: unsupported (dtype, op, or a CPU older than x86-64-v2).
Result<ReduceFn> reduce_kernel(DType dtype, ReduceOp op);

}  // namespace anyccl
