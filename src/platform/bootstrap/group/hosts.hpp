#pragma once
// The functions here number the hosts of a group, and count the ranks near one of them. Each rank
// calls them when it creates a communicator. The root server calls number_hosts() to encode the
// table of hellos.

#include <span>
#include <vector>

#include "platform/bootstrap/group/hello.hpp"

namespace anyccl::bootstrap {

/// For each hello the number of its host, as same_host() tells hosts apart: from 0, in order of
/// appearance. Takes time in proportion to the hellos.
std::vector<int> number_hosts(std::span<const Hello> hellos);

/// How many ranks there are near one of them, which counts, too.
struct RanksNear {
  int in_process = 0;
  long on_host = 0;
  long in_containers_beside = 0;  ///< On the same machine, in other network namespaces.
};
/// Counts the ranks near `mine` in `hellos`, which has it, too.
RanksNear ranks_near(const Hello& mine, std::span<const Hello> hellos);

}  // namespace anyccl::bootstrap
