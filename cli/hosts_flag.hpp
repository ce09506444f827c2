#pragma once

#include <string_view>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// The host of each of `ranks` ranks, for hosts with `ranks_on_each`; none for no hosts. Errors:
/// invalid_argument naming the flag.
Result<std::vector<int>> host_of(const std::vector<int>& ranks_on_each, int ranks,
                                 std::string_view flag = "--hosts");

}  // namespace anyccl::cli
