// Links over encrypted connections, with somebody between the two ends who sees all bytes.

#include <poll.h>

#include <atomic>
#include <thread>

#include "ends.hpp"
#include "platform/transports/sockets/socket_transport.hpp"
#include "platform/transports/tcp/tcp_transport.hpp"

namespace anyccl {
namespace {

using namespace test;

/// Passes on what the two ends say to each other, and keeps it.
class Relay {
 public:
  Relay() {
    for (std::size_t i = 0; i < 2; ++i) {
      Ends ends = connected_by_tcp();
      ends_[i] = std::move(ends[0]);
      inner_[i] = std::move(ends[1]);
    }
    for (std::size_t i = 0; i < 2; ++i)
      threads_[i] = std::thread([this, i] { run(inner_[i].get(), inner_[1 - i].get(), said_[i]); });
  }
  ~Relay() { join(); }
  UniqueFd take_end(std::size_t i) { return std::move(ends_[i]); }
  /// What both ends said, when both have closed their connection.
  Bytes all_said() {
    join();
    Bytes all = said_[0];
    all.insert(all.end(), said_[1].begin(), said_[1].end());
    return all;
  }
  /// The byte of this number that end 0 says is changed.
  void change(std::size_t at) { change_ = at; }

 private:
  void run(int from, int to, Bytes& said) {
    Bytes piece(4096);
    for (ssize_t n = 0; (n = ::recv(from, piece.data(), piece.size(), 0)) > 0;) {
      const auto size = static_cast<std::size_t>(n);
      const std::size_t at = change_;
      if (&said == said_.data() && at >= said.size() && at - said.size() < size)
        piece[at - said.size()] ^= std::byte{1};
      said.insert(said.end(), piece.begin(), piece.begin() + n);
      if (::send(to, piece.data(), size, MSG_NOSIGNAL) != n) break;
    }
    ::shutdown(to, SHUT_WR);
  }
  void join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  std::array<UniqueFd, 2> ends_, inner_;
  std::array<Bytes, 2> said_;
  std::atomic<std::size_t> change_{std::size_t(-1)};
  std::array<std::thread, 2> threads_;
};

/// Both ends of a connection through the relay; `encrypts`: after the handshake of TLS.
std::array<PeerSocket, 2> connect_through(Relay& relay, bool encrypts) {
  std::array<PeerSocket, 2> sockets;
  std::array<std::thread, 2> threads;
  for (std::size_t i = 0; i < 2; ++i)
    threads[i] = std::thread([&, i] {
      sockets[i].rank = Rank{static_cast<std::int32_t>(1 - i)};
      sockets[i].fd = relay.take_end(i);
      if (!encrypts) return;
      auto made = tls::make_stream(i == 0 ? tls::Side::client : tls::Side::server, key_of(1));
      require(made.ok(), "make_stream");
      const int fd = sockets[i].fd.get();
      require(::fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
      while (!(*made)->is_ready()) {
        require((*made)->shake_hands(fd).ok(), "shake hands");
        pollfd entry{fd, (*made)->events(), 0};
        if (!(*made)->is_ready()) require(::poll(&entry, 1, 60'000) == 1, "poll");
      }
      sockets[i].secure = std::move(*made);
    });
  for (std::thread& thread : threads) thread.join();
  return sockets;
}

std::array<std::unique_ptr<Transport>, 2> connect_ranks(Relay& relay, bool encrypts,
                                                        const char* chaos = "") {
  auto sockets = connect_through(relay, encrypts);
  std::array<std::unique_ptr<Transport>, 2> made;
  for (std::size_t i = 0; i < 2; ++i) {
    const Rank me{static_cast<std::int32_t>(i)};
    const auto context = std::make_shared<link::Context>(me, 0);
    Config config;
    config.tls = encrypts;
    config.chaos = *ChaosPlan::parse(chaos);
    std::vector<PeerSocket> peers;
    peers.push_back(std::move(sockets[i]));
    auto links = make_links(std::move(peers), me, config);
    require(links.ok(), "make_links");
    auto channel = links->front().link->open(context, links->front().rank);
    require(channel.ok(), "open");
    std::vector<link::PeerChannel> channels;
    channels.push_back({links->front().rank, std::move(*channel), false, false});
    auto transport = sockets::make_socket_transport(context, std::move(channels));
    require(transport.ok(), "make_socket_transport");
    made[i] = std::move(*transport);
  }
  return made;
}

/// Messages of several sizes both ways at the same time.
void exchange_messages(std::array<std::unique_ptr<Transport>, 2>& ranks, const Bytes& sent) {
  std::array<std::thread, 2> threads;
  for (std::size_t i = 0; i < 2; ++i)
    threads[i] = std::thread([&, i] {
      Transport& mine = *ranks[i];
      MessageRunner runner(mine);
      const int peer = static_cast<int>(1 - i);
      std::vector<Bytes> got;
      const std::size_t sizes[] = {8, 500, 40000, sent.size()};
      for (const std::size_t bytes : sizes) got.emplace_back(bytes);
      for (std::size_t m = 0; m < std::size(sizes); ++m) {
        runner.send(peer, m, 7, std::span(sent).first(sizes[m]));
        runner.receive(peer, m, 7, got[m]);
      }
      runner.run();
      for (std::size_t m = 0; m < std::size(sizes); ++m)
        EXPECT_TRUE(equal(got[m].data(), std::span(sent).first(sizes[m])));
      mine.leave();
    });
  for (std::thread& thread : threads) thread.join();
}

constexpr std::string_view kSent = "a pattern that anybody would recognise";

Bytes recognisable(std::size_t bytes) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(kSent[i % kSent.size()]);
  return made;
}

/// The first case shows that the second one looks at the right place.
TEST(TlsLinks, show_no_payload_on_the_wire) {
  for (const bool encrypts : {false, true}) {
    Relay relay;
    auto ranks = connect_ranks(relay, encrypts);
    exchange_messages(ranks, recognisable(1'000'000));
    for (auto& rank : ranks) rank.reset();
    const Bytes all = relay.all_said();
    EXPECT_GT(all.size(), 2'000'000U);
    EXPECT_EQ(has(all, kSent), !encrypts);
    EXPECT_EQ(has(all, kSent.substr(0, 8)), !encrypts);
  }
}

TEST(TlsLinks, have_the_harmless_faults_of_their_connections) {
  for (const char* chaos : {"partial=0.5", "delay=0.05:100us", "reorder=0.3"}) {
    Relay relay;
    auto ranks = connect_ranks(relay, true, chaos);
    exchange_messages(ranks, pattern(300'000, 1));
  }
}

/// Wherever the byte is, behind the handshake: an error at both ends, and no data from there on.
TEST(TlsLinks, name_the_peer_whose_data_was_changed_on_its_way) {
  for (const std::size_t at : {1000U, 20'000U, 123'456U}) {
    Relay relay;
    auto ranks = connect_ranks(relay, true);
    relay.change(at);
    const Bytes sent = pattern(1'000'000, 1);
    std::thread sender([&] {
      MessageRunner runner(*ranks[0]);
      runner.send(1, 0, 7, sent);
      const Status status = [&] {
        for (const Deadline limit = patience(); !limit.passed();) {
          runner.advance();
          if (Status s = ranks[0]->check(); !s.ok()) return s;
          if (ranks[0]->state(Rank{1}) == PeerState::dead) return Status();
        }
        return Status(Code::timeout, "");
      }();
      EXPECT_NE(status.code(), Code::timeout);
    });
    Bytes got(sent.size());
    MessageRunner runner(*ranks[1]);
    runner.receive(0, 0, 7, got);
    Status status;
    for (const Deadline limit = patience(); status.ok() && !limit.passed();
         status = ranks[1]->check())
      runner.advance();
    EXPECT_EQ(status.code(), Code::remote_error);
    EXPECT_NE(status.message().find("rank 0 sent data that failed the check of TLS to rank 1"),
              std::string_view::npos)
        << status.message();
    EXPECT_FALSE(runner.done());
    sender.join();
    for (auto& rank : ranks) rank.reset();
  }
}

TEST(TlsLinks, are_not_made_of_plain_connections) {
  Config config;
  config.tls = true;
  Ends ends = connected_by_tcp();
  std::vector<PeerSocket> peers(1);
  peers[0].rank = Rank{1};
  peers[0].fd = std::move(ends[0]);
  EXPECT_EQ(make_links(std::move(peers), Rank{0}, config).status().code(), Code::internal);
}

TEST(TlsLinks, say_that_they_are_encrypted) {
  for (const bool encrypts : {false, true}) {
    Relay relay;
    const auto ranks = connect_ranks(relay, encrypts);
    EXPECT_EQ(ranks[0]->name().find("TLS 1.3") != std::string_view::npos, encrypts)
        << ranks[0]->name();
  }
}

}  // namespace
}  // namespace anyccl
