#pragma once

#include "perf/comm.hpp"
#include "perf/options.hpp"

namespace anyccl::cli {

/// Runs all of `options` as one rank of `comm`. Rank 0 prints the table and writes the file.
/// `where`: for the table's head, such as "4 ranks (processes)". Returns the number of wrong
/// elements.
Result<std::int64_t> sweep(const PerfOptions& options, const Comm& comm, std::string_view where);

/// The size of a buffer for the largest of these sizes (in ascending order), with at least one
/// element for every rank.
std::size_t buffer_bytes(const std::vector<std::size_t>& sizes, int ranks);

}  // namespace anyccl::cli
