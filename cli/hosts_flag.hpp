#pragma once

#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// The host of each of `ranks` ranks, for hosts with so many ranks each; none for no hosts. Errors:
/// invalid_argument naming --hosts.
Result<std::vector<int>> host_of(const std::vector<int>& ranks_on_each, int ranks);

}  // namespace anyccl::cli
