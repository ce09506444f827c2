#pragma once

#include <string>

#include "anyccl/status.hpp"

namespace anyccl::fabric {

/// The properties of one kind of stream socket. Any thread.
class SocketKind {
 public:
  virtual ~SocketKind() = default;
  /// Of a transport over connections like this one, which is set up.
  virtual std::string name(int fd) const = 0;
  virtual Status set_up(int fd) const = 0;
  /// Whether all that was sent has reached the peer's kernel, so that closing cannot lose it.
  virtual bool all_delivered(int fd) const = 0;
  /// Whether the host at the other end must count as cut off: it has acknowledged nothing for longer
  /// than it may, though it was asked to.
  virtual bool is_silent(int /*fd*/) const { return false; }
  /// Whether file descriptors can be sent along.
  virtual bool carries_descriptors() const = 0;
};

}  // namespace anyccl::fabric
