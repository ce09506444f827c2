#pragma once

#include "framework/communicator.hpp"

namespace anyccl {

/// Makes `comm` ready for Comm::run_part() by `threads` threads of each rank. Collective over it.
/// Errors: invalid_usage where ranks want different numbers; those of split().
Status make_parts(Comm& comm, int threads);

}  // namespace anyccl
