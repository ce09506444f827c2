#pragma once

#include <array>
#include <cstddef>

#include "anyccl/types.hpp"
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
};

}  // namespace anyccl
