#pragma once

#include <string>

#include "perf/tune.hpp"

namespace anyccl::cli {

/// The effect of the rows that `anyccl tune` has written: a table of the cells where they choose
/// another algorithm than the built-in one, then the number of these and of the unmeasured cells.
/// Errors: invalid_argument when they are not rows.
Result<std::string> changes_table(const TuneOptions& options, const std::string& rows,
                                  const std::string& file);

}  // namespace anyccl::cli
