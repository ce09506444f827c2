#pragma once

#include <cstddef>
#include <vector>

#include "anyccl/status.hpp"
#include "base/byte_size.hpp"

namespace anyccl::cli {

/// Which sizes to run: from `first` to `last`, `step` apart, or, if `step` is 0, times `factor`.
struct SizeRange {
  std::size_t first = 8, last = 64 << 20, step = 0, factor = 2;
};

/// Errors: invalid_argument if the range would not end or is empty.
Result<std::vector<std::size_t>> sizes_in(const SizeRange& range);

}  // namespace anyccl::cli
