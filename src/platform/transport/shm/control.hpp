#pragma once

#include <array>
#include <string_view>

#include "anyccl/status.hpp"
#include "base/deadline.hpp"
#include "base/private_fd.hpp"

namespace anyccl::shm {

/// A message between local peers over their unix socket, next to the shared memory.
struct ControlMessage {
  enum Kind : std::uint32_t { segment = 0x616e7931, mapped, window, abort, goodbye, no_window };
  Kind kind = goodbye;
  std::int32_t code = 0;      ///< mapped: 1 if it worked. abort: the Code.
  std::uint64_t number = 0;   ///< Of the window, between owner and communicator; never reused.
                              ///< segment: what lies at `address`. mapped: 1 if that could be read.
  std::uint64_t address = 0;  ///< To a thread of the same process: where the memory is, or whose.
  std::uint64_t bytes = 0;
  char text[480] = {};  ///< abort: the reason; ends with a zero.
};
static_assert(sizeof(ControlMessage) == 512);

/// One end of the socket. Sending may happen in any thread (the caller serialises), receiving in
/// one.
class ControlSocket {
 public:
  ControlSocket() = default;
  explicit ControlSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  /// Sends all of it, or fails; with Deadline in the past it never blocks.
  Status send(const ControlMessage& message, std::array<int, 2> fds, Deadline deadline);
  enum class Got { message, nothing, end };
  /// Takes the next message, if it is there whole; `fds` receives what came with it.
  Got receive(ControlMessage& message, std::array<UniqueFd, 2>& fds);
  /// Waits for the next message. Errors: timeout, remote_error (the peer went away).
  Status await(ControlMessage& message, std::array<UniqueFd, 2>& fds, Deadline deadline);

  int fd() const { return fd_.get(); }
  UniqueFd release() { return fd_.release(); }

 private:
  PrivateFd fd_;
  std::size_t filled_ = 0;
  ControlMessage partial_;
  std::array<UniqueFd, 2> partial_fds_;
};

}  // namespace anyccl::shm
