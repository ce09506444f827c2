#pragma once

#include <string>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// The command line of this process, with the program's real path.
Result<std::vector<std::string>> own_command();

}  // namespace anyccl::cli
