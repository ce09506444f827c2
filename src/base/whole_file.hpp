#pragma once

#include <string>
#include <string_view>

#include "anyccl/status.hpp"

namespace anyccl {

/// Writes a file that readers see as a whole or not at all; one of that name is replaced. Errors:
/// system_error; then nothing is left of it.
Status write_whole_file(const std::string& path, std::string_view text);

}  // namespace anyccl
