#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/peer_socket.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl::sockets {

/// The properties of one kind of stream socket.
class SocketKind {
 public:
  virtual ~SocketKind() = default;
  /// Of a transport over connections like this one, which is set up.
  virtual std::string name(int fd) const = 0;
  virtual Status set_up(int fd) const = 0;
  /// Whether all that was sent has reached the peer's kernel, so that closing cannot lose it.
  virtual bool all_delivered(int fd) const = 0;
};

/// How much may arrive before it is asked for, in bytes; beyond it, peers have to wait (each peer
/// may always send 16 MiB).
inline constexpr std::size_t kEarlyBytes = std::size_t{256} << 20;

/// A transport over one stream socket per peer, connected and authenticated. It has no thread:
/// bytes move when it is called. After an operation has failed, call abort() or leave() before
/// memory that it named goes away.
/// Errors: invalid_argument (a rank twice, `me` among the peers, no connection), system_error, and
/// those of `kind`.
Result<std::unique_ptr<Transport>> make_socket_transport(Rank me, std::vector<PeerSocket> peers,
                                                         std::unique_ptr<const SocketKind> kind,
                                                         std::size_t early_bytes = kEarlyBytes);

}  // namespace anyccl::sockets
