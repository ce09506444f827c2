#pragma once
// In a large group, ranks that reach each other over the network connect when a communicator first
// uses a pair. A thread of the process, which starts with the first such group, calls and is
// called.

#include <memory>
#include <vector>

#include "platform/bootstrap/rendezvous/join.hpp"
#include "platform/bootstrap/socket/listeners.hpp"
#include "runtime/links/transports.hpp"

namespace anyccl {

/// The peers, by rank, that connect on demand: those of other hosts, with `force_network` all; but
/// none of a group of at most ANYCCL_CONNECT_ALL ranks without ANYCCL_RECONNECT. The same for both
/// ends of a pair.
std::vector<bool> connected_on_demand(const Config& config,
                                      const std::vector<bootstrap::Hello>& members, Rank me,
                                      bool force_network);

/// The links to them, which will be connected as long as one of these links exists. `listeners`:
/// what members[me] was made from. Errors: system_error (no thread).
Result<std::vector<PeerLink>> links_on_demand(
    bootstrap::Listeners listeners, std::shared_ptr<const std::vector<bootstrap::Hello>> members,
    const bootstrap::Secret& secret, Rank me, const std::vector<bool>& peers, bool force_network,
    const Config& config);

/// At exit: nobody connects any more.
void stop_connecting();

}  // namespace anyccl
