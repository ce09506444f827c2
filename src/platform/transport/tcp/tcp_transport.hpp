#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"
#include "platform/transport.hpp"

namespace anyccl::tcp {

/// A connection to a peer: a stream socket (TCP or unix), connected and authenticated.
struct TcpPeer {
  Rank rank{};
  UniqueFd fd;
};

struct TcpOptions {
  std::string congestion = {};  ///< Config::congestion.
  /// How much may arrive before it is asked for, in bytes; beyond it, peers have to wait (each peer
  /// may always send 16 MiB).
  std::size_t early_bytes = std::size_t{256} << 20;
};

/// A transport over one connection per peer. It has no thread: bytes move when it is called.
///
/// Publications are copied into the socket, so nothing is ever lent. After an operation has failed,
/// call abort() or leave() before memory that it named goes away.
/// Its name is "tcp/" and the congestion control, or "tcp/unix".
/// Errors: invalid_argument (a rank twice, `me` among the peers, a congestion control that cannot
/// be used), system_error.
Result<std::unique_ptr<Transport>> make_tcp_transport(Rank me, std::vector<TcpPeer> peers,
                                                      TcpOptions options);

}  // namespace anyccl::tcp
