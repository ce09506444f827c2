#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"

namespace anyccl::cli {

/// "all", a collective ("all_reduce"), an algorithm of each ("ring") or of one ("all_reduce/ring"),
/// or a file with one ("mine.json"). Errors: invalid_argument if there is none; as
/// read_algorithm().
Result<std::vector<const Algorithm*>> algorithms_named(std::string_view what);

/// The one algorithm that `what` names. Errors: also invalid_argument if there are several.
Result<const Algorithm*> algorithm_named(std::string_view what);

/// The algorithm in a file, which all_algorithms() does not get. Errors: as read_algorithm().
Result<std::vector<const Algorithm*>> algorithm_in(const std::string& file);

}  // namespace anyccl::cli
