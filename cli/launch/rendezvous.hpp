#pragma once

#include <string>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// A TCP port P such that P and P + 1 were free a moment ago: the job's own port and anyccl's. Not
/// one that the system gives to connections, so it is likely to stay free.
Result<int> free_port_pair();

/// 32 random hex digits.
Result<std::string> random_secret();

}  // namespace anyccl::cli
