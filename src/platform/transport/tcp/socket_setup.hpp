#pragma once

#include <string>

#include "anyccl/status.hpp"

namespace anyccl::tcp {

struct SocketKind {
  bool tcp = false;        ///< Else a unix stream socket.
  std::string congestion;  ///< What the kernel says it uses; empty if not TCP.
};

/// Prepares a connected stream socket: nonblocking, no delay, keepalive, `congestion` control
/// (empty: cubic where the system allows it, else its default).
Result<SocketKind> set_up_socket(int fd, const std::string& congestion);

/// Whether all that was sent has reached the peer's kernel, so that closing cannot lose it.
bool all_delivered(int fd, const SocketKind& kind);

}  // namespace anyccl::tcp
