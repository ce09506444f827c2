#pragma once

#include <string>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// The path of this program's file.
Result<std::string> own_path();

/// The command line of this process, with the program's real path.
Result<std::vector<std::string>> own_command();

}  // namespace anyccl::cli
