#pragma once

#include <vector>

#include "platform/bootstrap/hello.hpp"

namespace anyccl::bootstrap {

/// Where the ranks of a group run. Every rank works out the same.
struct Placement {
  std::vector<int> host_of;  ///< Of each rank, numbered from 0 in order of appearance.
  /// The same; if there is but one host, by what groups of its ranks are bound to: a last-level
  /// cache or else a memory node. All 0 if that does not divide them into groups.
  std::vector<int> near_of;
  /// For each rank, how many cores there are for each of those that may run where it may, itself
  /// included. 0: fewer than ranks.
  std::vector<int> cores_each;

  int ranks_per_core = 1;  ///< At least this many share each core; equal on all ranks.

  bool several_hosts() const;
};
Placement placement_of(const std::vector<Hello>& members);

}  // namespace anyccl::bootstrap
