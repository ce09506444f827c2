#pragma once

#include <span>
#include <vector>

#include "anyccl/types.hpp"
#include "base/deadline.hpp"
#include "base/peer_socket.hpp"
#include "platform/bootstrap/hello.hpp"
#include "platform/bootstrap/listeners.hpp"
#include "platform/bootstrap/secret.hpp"

namespace anyccl::bootstrap {

/// Connects this rank with every other one: one socket per pair, made by the higher rank; a unix
/// socket between ranks of one host unless `force_tcp` (equal on all ranks), and TCP where that
/// fails. Unauthenticated connections are dropped and disturb nobody.
///
/// `known`: ranks to which there is a connection, as they know too: they are left out.
///
/// Shapes: members[r] is rank r's hello, `listeners` is what members[me] was made from.
/// Result: a socket for every other rank, in the order of ranks; the other end of each knows the group's secret
///         and is the rank that it says.
/// Threads: any; all ranks call this at the same time and may be threads of one process.
/// Errors: timeout naming the missing ranks; invalid_argument; system_error.
Result<std::vector<PeerSocket>> connect_all(const Listeners& listeners,
                                            std::span<const Hello> members, Rank me,
                                            const Secret& secret, bool force_tcp, Deadline deadline,
                                            std::span<const Rank> known = {});

}  // namespace anyccl::bootstrap
