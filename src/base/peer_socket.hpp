#pragma once
// A PeerSocket is what the bootstrap makes for each pair of ranks that connects over the network or
// a unix socket. The runtime makes a link of it.

#include <array>
#include <cstddef>
#include <memory>

#include "anyccl/types.hpp"
#include "base/secure_stream.hpp"
#include "base/unique_fd.hpp"

namespace anyccl {

/// The authenticated stream socket to one peer: nonblocking, closed on exec, NODELAY if TCP.
struct PeerSocket {
  Rank rank{};
  UniqueFd fd;
  bool local = false;         ///< A unix socket: the peer is on this host.
  bool same_process = false;  ///< The peer is a thread of this process, as the kernel says, too.
  /// That only the two ends of this connection know.
  std::array<std::byte, 32> session = {};
  std::unique_ptr<SecureStream> secure = {};  ///< With ANYCCL_TLS, where it is no unix socket.
};

}  // namespace anyccl
