#include "support/transports.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "algorithm/plan/plan.hpp"

namespace anyccl::test {

void require(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::abort();
}

Ends connected_by_tcp() {
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

Ends connected_on_one_host() {
  int ends[2] = {-1, -1};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<link::PeerChannel> open_channels(const std::shared_ptr<link::Context>& context,
                                             std::vector<PeerSocket> sockets) {
  auto links = make_links(std::move(sockets), context->me, {});
  require(links.ok(), "make links");
  std::vector<link::PeerChannel> channels;
  for (const PeerLink& peer : *links) {
    auto channel = peer.link->open(context, peer.rank);
    require(channel.ok(), "open a channel");
    channels.push_back({peer.rank, std::move(*channel), peer.local, peer.same_process});
  }
  return channels;
}

std::vector<std::unique_ptr<Transport>> make_ranks(const TransportEntry& entry, int ranks) {
  link::PeerChannel near;
  near.local = true;
  const bool local = entry.reaches(near, true), same_process = local && !entry.reaches(near, false);
  std::vector<std::vector<PeerSocket>> peers(static_cast<std::size_t>(ranks));
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < a; ++b) {
      Ends ends = local ? connected_on_one_host() : connected_by_tcp();
      peers[static_cast<std::size_t>(a)].push_back(
          {Rank{b}, std::move(ends[0]), local, same_process});
      peers[static_cast<std::size_t>(b)].push_back(
          {Rank{a}, std::move(ends[1]), local, same_process});
    }
  }
  std::vector<std::unique_ptr<Transport>> made(peers.size());
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < made.size(); ++me)
    threads.emplace_back([&, me] {
      const Rank rank{static_cast<std::int32_t>(me)};
      const auto context = std::make_shared<link::Context>(rank, 0);
      TransportSetup setup{.me = rank,
                           .context = context,
                           .ranks = static_cast<std::uint32_t>(ranks),
                           .banks = kBanks,
                           .slots = 16,
                           .deadline = patience()};
      auto group = entry.make(open_channels(context, std::move(peers[me])), setup);
      require(group.ok() && group->transport && group->others.empty(), "make a transport");
      made[me] = std::move(group->transport);
    });
  for (std::thread& thread : threads) thread.join();
  return made;
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

void publish(Transport& t, Outgoing out, const std::vector<ReaderOf>& readers,
             const std::byte* source) {
  Publications& p = t.publications();
  out.readers = readers;
  for (const Deadline deadline = patience();;) {
    const auto offered = p.offer(out, source, false);
    if (offered == Publications::Offered::copied) return;
    ASSERT_NE(offered, Publications::Offered::lent) << "not lendable";
    if (offered == Publications::Offered::refused) {
      if (std::byte* const room = p.reserve(out)) {
        std::copy_n(source, out.bytes, room);
        return p.publish(out);
      }
    }
    ASSERT_FALSE(deadline.passed());
    ASSERT_TRUE(t.check().ok());
    std::this_thread::yield();
  }
}

const std::byte* await(Transport& t, const Incoming& in) {
  const Deadline deadline = patience();
  for (unsigned round = 1;; ++round) {
    if (const std::byte* data = t.publications().poll(in)) return data;
    if (round % 64 != 0) continue;
    const Status status = t.check();
    const bool late = deadline.passed();
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_FALSE(late);
    if (!status.ok() || late) return nullptr;
    std::this_thread::yield();
  }
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

void MessageRunner::send(int to, std::uint64_t message, std::uint32_t digest,
                         std::span<const std::byte> bytes) {
  sends_.push_back({{.peer = Rank{to}, .digest = digest, .message = message, .total = bytes.size()},
                    const_cast<std::byte*>(bytes.data())});
}

void MessageRunner::receive(int from, std::uint64_t message, std::uint32_t digest,
                            std::span<std::byte> bytes) {
  receives_.push_back(
      {{.peer = Rank{from}, .digest = digest, .message = message, .total = bytes.size()},
       bytes.data()});
}

bool MessageRunner::advance_send(Open& open) {
  Messages& messages = t_.messages();
  if (open.begun && open.moved == open.next.total) return messages.settled(open.next.peer);
  open.next.bytes = std::min(open.next.total - open.moved, messages.fragment_bytes());
  const auto sent = messages.send(open.next, open.memory + open.moved);
  if (sent == Messages::Sent::busy) return false;
  open.begun = true;
  open.moved += sent == Messages::Sent::lent ? open.next.total : open.next.bytes;
  ++open.next.number;
  return false;
}

bool MessageRunner::advance_receive(Open& open) {
  Messages& messages = t_.messages();
  if (!open.begun) {
    Envelope envelope;
    if (!messages.peek(open.next.peer, open.next.message, envelope)) return false;
    EXPECT_EQ(envelope.digest, open.next.digest);
    EXPECT_EQ(envelope.total, open.next.total);
    open.lent = envelope.lent;
    open.begun = true;
  }
  const std::size_t most = open.lent ? std::size_t{1} << 20 : messages.fragment_bytes();
  open.next.bytes = std::min(open.next.total - open.moved, most);
  if (!messages.receive(open.next, open.moved, open.memory + open.moved)) return false;
  open.moved += open.next.bytes;
  if (!open.lent) ++open.next.number;
  return open.moved == open.next.total;
}

bool MessageRunner::advance() {
  const std::size_t before = sends_.size() + receives_.size();
  if (!sends_.empty() && advance_send(sends_.front())) sends_.pop_front();
  if (!receives_.empty() && advance_receive(receives_.front())) receives_.pop_front();
  return sends_.size() + receives_.size() < before;
}

void MessageRunner::run() {
  const Deadline deadline = patience();
  for (unsigned round = 1; !done(); ++round) {
    advance();
    if (round % 64 != 0) continue;
    ASSERT_FALSE(deadline.passed());
    ASSERT_TRUE(t_.check().ok());
    std::this_thread::yield();
  }
}

}  // namespace anyccl::test
