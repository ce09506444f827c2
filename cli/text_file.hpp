#pragma once

#include <string>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// All of a file. Errors: system_error naming it.
Result<std::string> text_of_file(const std::string& file);

}  // namespace anyccl::cli
