#pragma once
// Ranks that a launcher has started find each other by variables of the environment, such as RANK,
// WORLD_SIZE and MASTER_ADDR. The thread that creates a communicator calls the functions here, and
// waits in join_environment() until all ranks have joined. Unless it is alone, rank 0 starts the
// root server, and every rank joins there.

#include "base/config.hpp"
#include "base/deadline.hpp"
#include "base/launchers.hpp"
#include "platform/bootstrap/rendezvous/join.hpp"

namespace anyccl::bootstrap {

/// The rank of this process and the number of ranks, from RANK and WORLD_SIZE; where neither is
/// set, from the variables of another launcher.
/// Errors: invalid_usage naming the variable that is missing; invalid_argument, also where one of
/// the two is set and contradicts the other launcher.
struct LaunchInfo {
  Rank rank{};
  int size = 0;
  std::optional<Launch> launch = {};  ///< If it comes from another launcher.
};
Result<LaunchInfo> read_launch_info(const Config& config);

/// Joins the group that a launcher described in the environment, as the rank in `mine` (see
/// read_launch_info). `listeners`: as in join().
///
/// Rank 0 serves at MASTER_ADDR, port ANYCCL_PORT or else MASTER_PORT + 1. Processes that
/// know ANYCCL_SECRET may join. Without it only processes of this user on this host may, and they
/// meet over a unix socket. A group of one meets nobody.
///
/// What another launcher has started on one host needs no variables for that; on several hosts it
/// needs ANYCCL_SECRET and, unless the launcher names rank 0's host, the others, too.
///
/// Errors: as join(); invalid_usage when a variable is missing, when the port is in use, or when
///         MASTER_ADDR is another host and there is no secret.
Result<Group> join_environment(const Config& config, const Hello& mine, Deadline deadline,
                               const std::optional<Launch>& launch = {},
                               const Listeners* listeners = nullptr);

}  // namespace anyccl::bootstrap
