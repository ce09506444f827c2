#pragma once

#include <vector>

#include "adapter/transports.hpp"
#include "base/deadline.hpp"
#include "platform/bootstrap/join.hpp"

namespace anyccl {

// Processes that meet again, in a communicator that no other one was made from, use the links that
// they have: a second connection would cost descriptors and time.

/// From now on this process finds the links when it meets the peers again. `sockets`: what they were
/// made of, in the same order.
struct LinkIdentity {
  Rank rank{};
  std::array<std::byte, 32> session{};  ///< That only its two ends know.
};
void remember_links(const bootstrap::Group& group, const std::vector<PeerLink>& links,
                    const std::vector<LinkIdentity>& identities);

/// The links to members of `group` that both processes know of, by rank. Each side proves over the
/// link that it knows the group's secret, so a process that claims to be a member is none of it.
/// A process with several ranks in the group makes fresh links. Collective over the group, with
/// connect_all() for the others. Errors: system_error.
Result<std::vector<PeerLink>> find_links(const bootstrap::Group& group, Rank me, bool force_network,
                                         Deadline deadline);

}  // namespace anyccl
