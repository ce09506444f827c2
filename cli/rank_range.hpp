#pragma once

#include <string_view>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// Numbers of ranks, both ends included.
struct RankRange {
  int first = 0, last = 0;
};

/// "2..65", or "8" for one number. Errors: invalid_argument.
Result<RankRange> parse_ranks(std::string_view text);

}  // namespace anyccl::cli
