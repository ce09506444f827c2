#pragma once

#include "perf/comm.hpp"
#include "perf/options.hpp"

namespace anyccl::cli {

/// Runs all that `options` ask for as one rank of `comm`. Rank 0 prints the table and writes the
/// file. `where`: for the table's head, such as "4 ranks (processes)". Returns how many elements
/// were wrong.
Result<std::int64_t> sweep(const PerfOptions& options, const Comm& comm, std::string_view where);

}  // namespace anyccl::cli
