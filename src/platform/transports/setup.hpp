#pragma once
// Each function that makes a transport takes a TransportSetup and returns a MadeTransport. The
// thread that creates a communicator calls one after another: peers that a transport does not reach
// go to the next.

#include <memory>
#include <vector>

#include "base/config.hpp"
#include "base/deadline.hpp"
#include "platform/link/channel.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl {

/// The parameters from which every transport of a communicator is made.
struct TransportSetup {
  Rank me{};
  std::shared_ptr<link::Context> context = {};
  // Equal on all ranks:
  std::uint32_t ranks = 0;  ///< How many the communicator has.
  std::uint32_t banks = 0,
                slots = 0;  ///< See Plan: number i of operation e goes to slot i % slots.
  std::size_t ring_bytes = std::size_t{1} << 20;  ///< The size of each rank's staging ring.
  /// The most bytes that fit a slot before its sequence word (LL and LL128).
  std::size_t line_bytes = kLineBytes;
  /// A fragment of a message is in its slot if it has at most this many bytes with its size.
  std::size_t message_line_bytes = kLineBytes;
  bool cores_are_shared = false;  ///< Ranks of the communicator take turns on cores.
  Config config = {};
  Deadline deadline = {};
};

struct MadeTransport {
  std::unique_ptr<Transport> transport;   ///< Null if no peer could be reached this way.
  std::vector<link::PeerChannel> others;  ///< The peers it does not reach after all.
};

}  // namespace anyccl
