#pragma once
// Users write sizes with units, in environment variables, rules of the tuner and on the command
// line. parse_size() reads all of these.

#include <cstddef>
#include <string_view>

#include "anyccl/status.hpp"

namespace anyccl {

/// "8", "4K", "1M", "2G" (powers of 1024, either case) in bytes.
/// Errors: invalid_argument for anything else, and for sizes larger than any memory.
Result<std::size_t> parse_size(std::string_view text);

}  // namespace anyccl
