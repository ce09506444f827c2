#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// "8", "4K", "1M", "2G" (powers of 1024, either case) in bytes.
/// Errors: invalid_argument for anything else, and for sizes larger than any memory.
Result<std::size_t> parse_size(std::string_view text);

/// Which sizes to run: from `first` to `last`, `step` apart, or, if `step` is 0, times `factor`.
struct SizeRange {
  std::size_t first = 8, last = 64 << 20, step = 0, factor = 2;
};

/// Errors: invalid_argument if the range would not end or is empty.
Result<std::vector<std::size_t>> sizes_in(const SizeRange& range);

}  // namespace anyccl::cli
