#pragma once

#include <string>

#include "perf/tune.hpp"

namespace anyccl::cli {

/// What the rows that `anyccl tune` has written change: a table of the cells where they choose
/// another algorithm than what is built in, then how many those are, and what was not measured.
/// Errors: invalid_argument when they are no rows.
Result<std::string> changes(const TuneOptions& options, const std::string& rows,
                            const std::string& file);

}  // namespace anyccl::cli
