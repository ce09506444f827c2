#include "support.hpp"

#include <sys/socket.h>

#include <thread>

namespace anyccl::test {

Ends connected(Wire wire) {
  return wire == Wire::loopback ? connected_by_tcp() : connected_on_one_host();
}

std::unique_ptr<Transport> transport(Wire wire, int rank, std::vector<PeerSocket> peers) {
  for (PeerSocket& peer : peers) peer.local = wire == Wire::unix_socket;
  const auto context = std::make_shared<link::Context>(Rank{rank}, 0);
  auto made = sockets::make_socket_transport(context, open_channels(context, std::move(peers)));
  require(made.ok(), "make_socket_transport");
  return std::move(*made);
}

std::vector<std::unique_ptr<Transport>> group(int ranks, Wire wire) {
  std::vector<std::vector<PeerSocket>> peers(static_cast<std::size_t>(ranks));
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < a; ++b) {
      Ends ends = connected(wire);
      peers[static_cast<std::size_t>(a)].push_back({Rank{b}, std::move(ends[0])});
      peers[static_cast<std::size_t>(b)].push_back({Rank{a}, std::move(ends[1])});
    }
  }
  std::vector<std::unique_ptr<Transport>> made;
  for (int r = 0; r < ranks; ++r)
    made.push_back(transport(wire, r, std::move(peers[static_cast<std::size_t>(r)])));
  return made;
}

void run_ranks(int ranks, Wire wire, const std::function<void(int, Transport&)>& body) {
  auto transports = group(ranks, wire);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Transport& mine = *transports[static_cast<std::size_t>(r)];
      body(r, mine);
      mine.leave();
    });
  }
  for (std::thread& t : threads) t.join();
}

BarePeer::BarePeer(Wire wire) {
  auto [one, other] = connected(wire);
  std::vector<PeerSocket> peers;
  peers.push_back({Rank{1}, std::move(one)});
  socket = std::move(other);
  transport = test::transport(wire, 0, std::move(peers));
}

void BarePeer::send(std::span<const std::byte> bytes) const {
  ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

void offer_until_taken(Transport& t, Outgoing out, const std::vector<ReaderOf>& readers,
                       const std::byte* source) {
  out.readers = readers;
  for (const Deadline deadline = patience();;) {
    const auto offered = t.publications().offer(out, source, false);
    if (offered == Publications::Offered::copied) return;
    ASSERT_EQ(offered, Publications::Offered::busy);
    ASSERT_FALSE(deadline.passed());
    std::this_thread::yield();
  }
}

void publish_to(Transport& t, int reader, Outgoing out, std::span<const std::byte> bytes) {
  out.bytes = bytes.size();
  const ReaderOf all{static_cast<std::uint16_t>(reader), 0, 0, bytes.size()};
  offer_until_taken(t, out, {all}, bytes.data());
}

}  // namespace anyccl::test
