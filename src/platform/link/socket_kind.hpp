#pragma once
// A socket kind says in which properties TCP and unix sockets differ: name, options, whether all
// bytes have reached the kernel of the peer, and whether descriptors can be sent along. The tcp and
// unix_socket transports implement it, and links call it.

#include <string>

#include "anyccl/status.hpp"

namespace anyccl::link {

/// One kind of stream socket. Any thread.
class SocketKind {
 public:
  virtual ~SocketKind() = default;
  /// The name of a transport over connections like this one, which is set up.
  virtual std::string name(int fd) const = 0;
  virtual Status set_up(int fd) const = 0;
  /// Whether all that was sent has reached the peer's kernel, so that closing cannot lose it.
  virtual bool all_delivered(int fd) const = 0;
  /// Whether the host at the other end must count as cut off: it has acknowledged nothing for
  /// longer than it may, though it was asked to.
  virtual bool is_silent(int /*fd*/) const { return false; }
  /// Whether file descriptors can be sent along.
  virtual bool carries_descriptors() const = 0;
};

}  // namespace anyccl::link
