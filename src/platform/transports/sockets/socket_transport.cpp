#include "platform/transports/sockets/socket_transport.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "platform/transports/sockets/messages.hpp"
#include "platform/transports/sockets/publications.hpp"

namespace anyccl::sockets {
namespace {

class SocketTransport final : public Transport {
 public:
  explicit SocketTransport(std::shared_ptr<link::Context> context)
      : connections_(std::move(context)), publications_(connections_), messages_(connections_) {}
  /// Adds a peer, in the order of ranks; the link of the first one names the transport.
  void add(link::PeerChannel peer) {
    const link::Link& link = peer.channel != nullptr ? peer.channel->link() : *peer.link;
    if (peers().empty()) name_ = link.name();
    connections_.add(std::move(peer));
  }

  std::string_view name() const override { return name_; }
  std::span<const Rank> peers() const override { return connections_.ranks(); }
  Publications& publications() override { return publications_; }
  Messages& messages() override { return messages_; }
  std::size_t memory_bytes() override { return connections_.memory_bytes(); }

  Status check() override { return connections_.check(); }
  bool is_vague() const override { return connections_.is_vague(); }
  PeerState state(Rank peer) override { return connections_.state(peer); }
  std::string how_ended(Rank peer) override { return connections_.how_ended(peer); }
  bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return connections_.call_of(peer, sequence, record);
  }
  Status glance() override { return connections_.glance(); }
  std::uint64_t unread_by(Rank peer) const override { return connections_.unread_by(peer); }
  bool known_call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return connections_.known_call_of(peer, sequence, record);
  }
  PeerCalls calls_of(Rank peer) override { return connections_.calls_of(peer); }
  void expect(Rank peer) override { connections_.expect(peer); }
  void prepare_sleep(Alarm) override { connections_.prepare_sleep(); }
  void append_alarms(std::vector<pollfd>& alarms) override { connections_.append_events(alarms); }
  void sleep(std::chrono::nanoseconds most, std::span<const pollfd> others) override {
    connections_.sleep(most, others);
  }
  void end_sleep() override { connections_.end_sleep(); }
  bool wakes_surely() const override { return connections_.wakes_surely(); }
  void wake() override { connections_.wake(); }
  void abort(const Status& why) override { connections_.abort(why); }
  void deliver_abort() override { connections_.deliver_abort(); }
  void leave(Deadline deadline) override { connections_.leave(deadline); }

 private:
  std::string name_;
  Connections connections_;
  SocketPublications publications_;
  SocketMessages messages_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_socket_transport(std::shared_ptr<link::Context> context,
                                                         std::vector<link::PeerChannel> peers) {
  const Rank me = context->me;
  std::sort(peers.begin(), peers.end(),
            [](const link::PeerChannel& a, const link::PeerChannel& b) { return a.rank < b.rank; });
  auto transport = std::make_unique<SocketTransport>(std::move(context));
  Rank previous{-1};
  for (link::PeerChannel& peer : peers) {
    if (peer.rank == me || peer.rank == previous || index(peer.rank) < 0 ||
        (!peer.channel && !peer.link))
      return error(
          Code::invalid_argument,
          "rank {} cannot reach rank {} over a socket: it is given twice, is this rank, or "
          "has no connection",
          index(me), index(peer.rank));
    previous = peer.rank;
    transport->add(std::move(peer));
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace anyccl::sockets
