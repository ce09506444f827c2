#pragma once
// Messages over sockets go as data frames (platform/link/frame.hpp), one for each fragment of at
// most 256 KiB. They share the window of the context with publications.

#include "platform/transport/messages.hpp"
#include "platform/transports/sockets/connections.hpp"

namespace anyccl::sockets {

/// The messages of one communicator over sockets.
class SocketMessages final : public Messages {
 public:
  explicit SocketMessages(Connections& connections) : connections_(connections) {}

  std::size_t fragment_bytes() const override { return std::size_t{256} << 10; }
  Sent send(const Fragment& out, const std::byte* source) override;
  /// Whether `reader` is present or has left, and nothing is queued to any peer.
  bool settled(Rank reader) override;
  bool peek(Rank from, std::uint64_t message, Envelope& envelope) override;
  bool receive(const Fragment& in, std::size_t offset, std::byte* into) override;

 private:
  Connections& connections_;
};

}  // namespace anyccl::sockets
