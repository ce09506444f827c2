#include "support.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

namespace anyccl::test {
namespace {

// Called where there is no test to fail yet.
void require(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::abort();
}

std::pair<UniqueFd, UniqueFd> connected_over_loopback() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  require(::bind(listener.get(), where, length) == 0, "bind");
  require(::listen(listener.get(), 1) == 0, "listen");
  require(::getsockname(listener.get(), where, &length) == 0, "getsockname");
  UniqueFd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(::connect(one.get(), where, length) == 0, "connect");
  UniqueFd other(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  require(other.get() >= 0, "accept");
  return {std::move(one), std::move(other)};
}

std::unique_ptr<Transport> transport(int rank, std::vector<tcp::TcpPeer> peers,
                                     const tcp::TcpOptions& options) {
  auto made = tcp::make_tcp_transport(Rank{rank}, std::move(peers), options);
  require(made.ok(), "make_tcp_transport");
  return std::move(*made);
}

}  // namespace

std::pair<UniqueFd, UniqueFd> connected(Wire wire) {
  if (wire == Wire::loopback) return connected_over_loopback();
  int ends[2] = {-1, -1};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<std::unique_ptr<Transport>> group(int ranks, Wire wire, tcp::TcpOptions options) {
  std::vector<std::vector<tcp::TcpPeer>> peers(static_cast<std::size_t>(ranks));
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < a; ++b) {
      auto [one, other] = connected(wire);
      peers[static_cast<std::size_t>(a)].push_back({Rank{b}, std::move(one)});
      peers[static_cast<std::size_t>(b)].push_back({Rank{a}, std::move(other)});
    }
  }
  std::vector<std::unique_ptr<Transport>> made;
  for (int r = 0; r < ranks; ++r)
    made.push_back(transport(r, std::move(peers[static_cast<std::size_t>(r)]), options));
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
  std::vector<tcp::TcpPeer> peers;
  peers.push_back({Rank{1}, std::move(one)});
  socket = std::move(other);
  transport = test::transport(0, std::move(peers), {});
}

void BarePeer::send(std::span<const std::byte> bytes) const {
  ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

void wait_until(Transport& t, const std::function<bool()>& done) {
  for (const Deadline deadline = patience(); !done();) {
    ASSERT_FALSE(deadline.passed());
    (void)t.check();
    t.sleep(std::chrono::milliseconds(1));
  }
}

Status wait_for_problem(Transport& t) {
  Status problem;
  wait_until(t, [&] { return !(problem = t.check()).ok(); });
  return problem;
}

void publish(Transport& t, Outgoing out, std::vector<ReaderOf> readers, const std::byte* source) {
  out.readers = readers;
  for (const Deadline deadline = patience();;) {
    const auto offered = t.offer(out, source, false);
    if (offered == Transport::Offered::copied) return;
    ASSERT_EQ(offered, Transport::Offered::busy);
    ASSERT_FALSE(deadline.passed());
    std::this_thread::yield();
  }
}

void publish_to(Transport& t, int reader, Outgoing out, std::span<const std::byte> bytes) {
  out.bytes = bytes.size();
  const ReaderOf all{static_cast<std::uint16_t>(reader), 0, 0, bytes.size()};
  publish(t, out, {all}, bytes.data());
}

const std::byte* await(Transport& t, const Incoming& in) {
  const Deadline deadline = patience();
  for (unsigned round = 1;; ++round) {
    if (const std::byte* data = t.poll(in)) return data;
    if (round % 64 != 0) continue;
    const Status status = t.check();
    const bool late = deadline.passed();
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_FALSE(late);
    if (!status.ok() || late) return nullptr;
    std::this_thread::yield();
  }
}

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  std::uint32_t x = seed * 2654435761U + 1;
  for (std::byte& b : made) {
    x = x * 1664525U + 1013904223U;
    b = static_cast<std::byte>(x >> 24);
  }
  return made;
}

bool equal(const std::byte* data, std::span<const std::byte> expected) {
  return data != nullptr &&
         (expected.empty() || std::memcmp(data, expected.data(), expected.size()) == 0);
}

}  // namespace anyccl::test
