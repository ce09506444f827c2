#pragma once

#include <functional>
#include <span>
#include <vector>

#include "anyccl/types.hpp"
#include "base/deadline.hpp"
#include "base/peer_socket.hpp"
#include "platform/bootstrap/hello.hpp"
#include "platform/bootstrap/listeners.hpp"
#include "platform/bootstrap/secret.hpp"

namespace anyccl::bootstrap {

/// Why one of the ranks that are waited for will not come; ok as long as they may.
using Watch = std::function<Status(std::span<const Rank> missing)>;

/// Connects this rank with every other one: one socket per pair, made by the higher rank; a unix
/// socket between ranks of one host unless `force_tcp` (equal on all ranks), and TCP where that
/// fails. Unauthenticated connections are dropped and disturb nobody.
///
/// Shapes: members[r] is rank r's hello, `listeners` is what members[me] was made from.
/// Result: size - 1 sockets in the order of ranks; the other end of each knows the group's secret
///         and is the rank that it says.
/// Threads: any; all ranks call this at the same time and may be threads of one process.
/// Errors: timeout naming the missing ranks; invalid_argument; system_error; and what `watch` says,
///         which is asked many times a second, and believed the second time.
Result<std::vector<PeerSocket>> connect_all(const Listeners& listeners,
                                            std::span<const Hello> members, Rank me,
                                            const Secret& secret, bool force_tcp, Deadline deadline,
                                            const Watch& watch = {});

}  // namespace anyccl::bootstrap
