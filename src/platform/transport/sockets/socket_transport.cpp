#include "platform/transport/sockets/socket_transport.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "platform/transport/sockets/messages.hpp"
#include "platform/transport/sockets/publications.hpp"

namespace anyccl::sockets {
namespace {

Status make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) >= 0) return {};
  return system_error(errno, "make the connection to a peer nonblocking");
}

class SocketTransport final : public Transport {
 public:
  SocketTransport(Rank me, std::unique_ptr<const SocketKind> kind, std::size_t early_bytes,
                  UniqueFd doorbell)
      : kind_(std::move(kind)),
        connections_(me, early_bytes, std::move(doorbell)),
        publications_(connections_),
        messages_(connections_) {}
  Status add(PeerSocket peer) {
    ANYCCL_CHECK(make_nonblocking(peer.fd.get()));
    ANYCCL_CHECK(kind_->set_up(peer.fd.get()));
    if (peers().empty()) name_ = kind_->name(peer.fd.get());
    connections_.add(peer.rank, std::move(peer.fd));
    return {};
  }

  std::string_view name() const override { return name_; }
  std::span<const Rank> peers() const override { return connections_.ranks(); }
  Publications& publications() override { return publications_; }
  Messages& messages() override { return messages_; }
  std::size_t memory_bytes() override { return connections_.memory_bytes(); }

  Status check() override { return connections_.check(); }
  bool is_vague() const override { return connections_.is_vague(); }
  PeerState state(Rank peer) override { return connections_.state(peer); }
  bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return connections_.call_of(peer, sequence, record);
  }
  void sleep(std::chrono::nanoseconds most) override { connections_.sleep(most); }
  void wake() override { connections_.wake(); }
  void abort(const Status& why) override { connections_.abort(why); }
  void deliver_abort() override { connections_.deliver_abort(*kind_); }
  void leave() override { connections_.leave(*kind_); }

 private:
  const std::unique_ptr<const SocketKind> kind_;
  std::string name_;
  Connections connections_;
  SocketPublications publications_;
  SocketMessages messages_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_socket_transport(Rank me, std::vector<PeerSocket> peers,
                                                         std::unique_ptr<const SocketKind> kind,
                                                         std::size_t early_bytes) {
  std::sort(peers.begin(), peers.end(),
            [](const PeerSocket& a, const PeerSocket& b) { return a.rank < b.rank; });
  UniqueFd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell) return system_error(errno, "eventfd");
  auto transport =
      std::make_unique<SocketTransport>(me, std::move(kind), early_bytes, std::move(doorbell));
  Rank previous{-1};
  for (PeerSocket& peer : peers) {
    if (peer.rank == me || peer.rank == previous || index(peer.rank) < 0 || !peer.fd)
      return error(
          Code::invalid_argument,
          "rank {} cannot reach rank {} over a socket: it is given twice, is this rank, or "
          "has no connection",
          index(me), index(peer.rank));
    previous = peer.rank;
    ANYCCL_CHECK(transport->add(std::move(peer)));
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace anyccl::sockets
