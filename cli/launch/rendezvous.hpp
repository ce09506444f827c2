#pragma once

#include <string>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {

/// TCP ports P and P + 1 that were free a moment ago: the job's own port and anyccl's. The system
/// does not give them to connections, so they are likely to stay free; and no other PortPair of
/// this host has one of them.
struct PortPair {
  int first = 0;
  UniqueFd claims[2];
};
Result<PortPair> free_port_pair();

/// 32 random hex digits.
Result<std::string> random_secret();

/// The secret that all nodes of a job were given: what is in `file`, or ANYCCL_SECRET if that is
/// empty. Errors: invalid_argument saying what is wrong, or how to make one; system_error.
Result<std::string> read_shared_secret(const std::string& file);

}  // namespace anyccl::cli
