#include <netinet/in.h>
#include <netinet/tcp.h>

#include <thread>

#include "platform/transports/tcp/tcp_transport.hpp"
#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;

Status problem_with(Rank me, std::initializer_list<int> ranks) {
  std::vector<UniqueFd> others;
  std::vector<PeerSocket> peers;
  for (const int r : ranks) {
    auto [one, other] = connected(Wire::loopback);
    peers.push_back({Rank{r}, std::move(one)});
    others.push_back(std::move(other));
  }
  const auto context = std::make_shared<link::Context>(me, 0);
  return sockets::make_socket_transport(context, open_channels(context, std::move(peers))).status();
}

TEST(SocketSetup, lists_its_peers_in_ascending_order) {
  std::vector<PeerSocket> peers;
  std::vector<UniqueFd> others;
  for (const int r : {5, 0, 3}) {
    auto [one, other] = connected(Wire::unix_socket);
    peers.push_back({Rank{r}, std::move(one)});
    others.push_back(std::move(other));
  }
  const auto made = transport(Wire::unix_socket, 1, std::move(peers));
  const auto ranks = made->peers();
  EXPECT_EQ(std::vector<Rank>(ranks.begin(), ranks.end()),
            (std::vector{Rank{0}, Rank{3}, Rank{5}}));
}

TEST(SocketSetup, refuses_a_peer_that_is_given_twice) {
  EXPECT_EQ(problem_with(Rank{0}, {1, 2, 1}).code(), Code::invalid_argument);
}

TEST(SocketSetup, refuses_this_rank_as_its_peer) {
  EXPECT_EQ(problem_with(Rank{1}, {1, 2}).code(), Code::invalid_argument);
}

TEST(SocketSetup, uses_cubic_where_the_system_allows_it) {
  auto [one, other] = connected(Wire::loopback);
  // Every system allows it; it may be the default, too.
  ASSERT_EQ(::setsockopt(one.get(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
  const bool is_allowed = ::setsockopt(other.get(), IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) == 0;
  const auto link = link::Link::make(std::move(one), tcp::tcp_socket());
  ASSERT_TRUE(link.ok());
  EXPECT_EQ((*link)->name(), is_allowed ? "tcp/cubic" : "tcp/reno");
}

int tcp_option(int fd, int option) {
  int value = 0;
  socklen_t length = sizeof value;
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, option, &value, &length), 0);
  return value;
}

TEST(SocketSetup, an_idle_host_is_asked_until_the_limit_of_silence) {
  for (const int limit : {2, 3, 6, 7, 11, 29, 30, 600}) {
    auto [one, other] = connected(Wire::loopback);
    ASSERT_TRUE(tcp::tcp_socket(limit)->set_up(one.get()).ok());
    const int interval = tcp_option(one.get(), TCP_KEEPINTVL);
    const int end =
        tcp_option(one.get(), TCP_KEEPIDLE) + tcp_option(one.get(), TCP_KEEPCNT) * interval;
    EXPECT_EQ(end, limit);
    if (limit >= 6) {
      EXPECT_GE((end - interval) * 6, limit * 5) << limit;
    }
  }
}

TEST(SocketSetup, a_host_whose_process_does_not_read_is_not_silent) {
  constexpr int kLimit = 1;
  auto [one, other] = connected(Wire::loopback);
  const auto kind = tcp::tcp_socket(kLimit);
  ASSERT_TRUE(kind->set_up(one.get()).ok());
  const std::vector<std::byte> piece(1 << 16);
  while (::send(one.get(), piece.data(), piece.size(), MSG_DONTWAIT) > 0) continue;
  const Deadline twice = Deadline::in(std::chrono::seconds(2 * kLimit + 1));
  while (!twice.passed()) {
    ASSERT_FALSE(kind->is_silent(one.get()));
    // Only time can show it: the host is asked again and again, and answers.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace
}  // namespace anyccl
