#pragma once
// Publications over sockets go as data frames (platform/link/frame.hpp), one for each reader, with
// the part that this reader reads. They are copied into the socket, so nothing is ever lent.

#include "platform/transport/publications.hpp"
#include "platform/transports/sockets/connections.hpp"

namespace anyccl::sockets {

/// The publications of one communicator over sockets.
class SocketPublications final : public Publications {
 public:
  explicit SocketPublications(Connections& connections)
      : Publications({.takes_any_memory = true}), connections_(connections) {}

  void announce(const CallRecord& call) override { connections_.announce(call, false); }
  void announce_first(const CallRecord& call) override { connections_.announce(call, true); }
  Offered offer(const Outgoing& out, const std::byte* source, bool lendable) override;
  /// Returns a buffer of the pool of the process; null while some reader has no room.
  std::byte* reserve(const Outgoing& out) override;
  void publish(const Outgoing& out) override { send(out, result_.data()); }
  const std::byte* poll(const Incoming& in) override;
  void consumed(const Incoming& in) override;
  void post(std::uint64_t, std::uint32_t, std::uint32_t) override {}
  bool finished(std::uint64_t operation, bool everyone) override;
  bool settled() override { return connections_.settled(); }
  bool is_behind(Rank peer) override {
    const link::Channel* const channel = connections_.opened(peer);
    return channel != nullptr && !channel->idle();
  }

 private:
  void send(const Outgoing& out, const std::byte* source);

  Connections& connections_;
  link::Buffer result_;  // For reserve().
};

}  // namespace anyccl::sockets
