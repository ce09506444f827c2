#pragma once
// Control messages are notices between local peers over their link, next to the shared memory. Each
// has 512 bytes, and up to two file descriptors with it. They show memory and answer that, announce
// and close windows, and tell peers of a failure.

#include <array>
#include <optional>

#include "anyccl/status.hpp"
#include "base/deadline.hpp"
#include "base/unique_fd.hpp"
#include "platform/link/channel.hpp"

namespace anyccl::shm {

/// The payload of such a notice.
struct ControlMessage {
  enum Kind : std::uint32_t { segment = 0x616e7931, mapped, window, abort, no_window, shown };
  Kind kind = segment;
  std::int32_t code = 0;      ///< mapped: 1 if it worked. abort: the Code.
  std::uint64_t number = 0;   ///< The window's, between owner and communicator; never reused.
                              ///< segment: what lies at `address`. mapped: 1 if that could be read.
  std::uint64_t address = 0;  ///< To a thread of the same process: where the memory is, or whose.
  std::uint64_t bytes = 0;
  std::uint64_t position = 0;          ///< segment: in the volume. shown: bytes that peers write.
  std::uint32_t volume = 0, bell = 0;  ///< segment: as Block has them; 0: shown with this message.
  char text[464] = {};                 ///< abort: the reason; ends with a zero.
};
static_assert(sizeof(ControlMessage) == 512);

/// What came with a message.
using Descriptors = std::array<UniqueFd, link::kMaxDescriptors>;

/// `fds`: -1 for none; the first comes first. Any thread. Errors: as Channel::send_notice().
Status send(link::Channel& to, const ControlMessage& message, std::array<int, 2> fds = {-1, -1});
/// Takes the next message, if it is there; `fds` receives what came with it. What is malformed is
/// an abort that says so.
bool receive(link::Channel& from, ControlMessage& message, Descriptors& fds);
/// Waits for the next message. Errors: timeout, remote_error (the peer went away).
Status await(link::Channel& from, ControlMessage& message, Descriptors& fds, Deadline deadline);

}  // namespace anyccl::shm
