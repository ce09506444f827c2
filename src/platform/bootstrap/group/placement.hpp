#pragma once
// A placement says which ranks of a group share a host, a cache or a memory node, and how many
// cores each of them has. Every rank works out the same one from the hellos of the group, in the
// thread that creates its communicator.

#include <vector>

#include "platform/bootstrap/group/hello.hpp"

namespace anyccl::bootstrap {

/// Where the ranks of a group run.
struct Placement {
  std::vector<int> host_of;  ///< Each rank's host, numbered from 0 in order of appearance.
  /// Each rank's host, too; if there is but one, its group of ranks that are bound to one
  /// last-level cache, or else to one memory node. All 0 if that does not divide them into groups.
  std::vector<int> near_of;
  /// For each rank, how many cores there are for each of those that may run where it may, itself
  /// included. 0: fewer than ranks.
  std::vector<int> cores_each;

  int ranks_per_core = 1;  ///< At least this many share each core; equal on all ranks.

  bool several_hosts() const;
};
Placement placement_of(const std::vector<Hello>& members);

}  // namespace anyccl::bootstrap
