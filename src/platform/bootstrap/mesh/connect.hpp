#pragma once
// The ranks of a group connect with each other once all of them have joined. Each rank calls
// connect_all() while it creates a communicator, and waits in it. The higher rank of a pair dials,
// and each new connection begins with a handshake (auth/handshake.hpp).

#include <poll.h>

#include <span>
#include <vector>

#include "anyccl/types.hpp"
#include "base/deadline.hpp"
#include "base/peer_socket.hpp"
#include "platform/bootstrap/group/hello.hpp"
#include "platform/bootstrap/socket/listeners.hpp"
#include "platform/bootstrap/socket/secret.hpp"

namespace anyccl::bootstrap {

/// Connections between processes that know each other already, which serve instead of new ones. The
/// higher rank of a pair decides whether one is tried.
class Acquaintances {
 public:
  virtual ~Acquaintances() = default;
  /// Goes on as far as possible, without waiting.
  virtual Status advance() = 0;
  /// Whether there is one to `peer`, as both sides know.
  virtual bool has(Rank peer) const = 0;
  /// Whether one to `peer`, a lower rank, is being tried: until then no new one is made.
  virtual bool tries(Rank peer) const = 0;
  /// The events after which advance() may find something, if no other thread reads it first.
  virtual void append_wanted(std::vector<pollfd>& entries) const = 0;
};

/// Connects this rank with every other one: one socket per pair, made by the higher rank; a unix
/// socket between ranks of one host unless `force_tcp` (equal on all ranks), and TCP where that
/// fails. Unauthenticated connections are dropped and disturb nobody.
///
/// Ranks to which `known` has a connection are left out; null: there is none. So are those of
/// `later` (by rank; empty: none), which are not let in either: see OnDemand.
///
/// `encrypts`, equal on all ranks: connections over the network have a SecureStream.
///
/// Shapes: members[r] is rank r's hello, `listeners` is what members[me] was made from.
/// Result: a socket for every other rank, in the order of ranks; the other end of each knows the
///         group's secret and is the rank that it says.
/// Threads: any; all ranks call this at the same time and may be threads of one process.
/// Errors: timeout naming the missing ranks; invalid_argument; system_error.
Result<std::vector<PeerSocket>> connect_all(const Listeners& listeners,
                                            std::span<const Hello> members, Rank me,
                                            const Secret& secret, bool force_tcp, Deadline deadline,
                                            Acquaintances* known = nullptr,
                                            const std::vector<bool>& later = {},
                                            bool encrypts = false);

}  // namespace anyccl::bootstrap
