#include "platform/transport/tcp/tcp_transport.hpp"
#include "platform/transport/unix_socket/unix_transport.hpp"
#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;

Status problem_with(Rank me, std::initializer_list<int> ranks, const std::string& congestion = {}) {
  std::vector<UniqueFd> others;
  std::vector<PeerSocket> peers;
  for (const int r : ranks) {
    auto [one, other] = connected(Wire::loopback);
    peers.push_back({Rank{r}, std::move(one)});
    others.push_back(std::move(other));
  }
  TransportSetup setup{.me = me};
  setup.config.congestion = congestion;
  return tcp::make_tcp_transport(std::move(peers), setup).status();
}

TEST(SocketSetup, lists_its_peers_in_ascending_order) {
  std::vector<PeerSocket> peers;
  std::vector<UniqueFd> others;
  for (const int r : {5, 0, 3}) {
    auto [one, other] = connected(Wire::unix_socket);
    peers.push_back({Rank{r}, std::move(one)});
    others.push_back(std::move(other));
  }
  const auto made = unix_socket::make_unix_transport(std::move(peers), {.me = Rank{1}});
  ASSERT_TRUE(made.ok());
  const auto ranks = made->transport->peers();
  EXPECT_EQ(std::vector<Rank>(ranks.begin(), ranks.end()),
            (std::vector{Rank{0}, Rank{3}, Rank{5}}));
}

TEST(SocketSetup, refuses_a_peer_that_is_given_twice) {
  EXPECT_EQ(problem_with(Rank{0}, {1, 2, 1}).code(), Code::invalid_argument);
}

TEST(SocketSetup, refuses_this_rank_as_its_peer) {
  EXPECT_EQ(problem_with(Rank{1}, {1, 2}).code(), Code::invalid_argument);
}

TEST(SocketSetup, refuses_a_congestion_control_that_does_not_exist) {
  const Status problem = problem_with(Rank{0}, {1}, "no_such_control");
  EXPECT_EQ(problem.code(), Code::invalid_argument);
  EXPECT_NE(problem.message().find("ANYCCL_TCP_CONGESTION=no_such_control"),
            std::string_view::npos);
}

TEST(SocketSetup, uses_and_names_the_congestion_control_it_is_told) {
  auto [one, other] = connected(Wire::loopback);
  std::vector<PeerSocket> peers;
  peers.push_back({Rank{1}, std::move(one)});
  TransportSetup setup;
  setup.config.congestion = "reno";  // Every system allows it.
  const auto made = tcp::make_tcp_transport(std::move(peers), setup);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->transport->name(), "tcp/reno");
}

}  // namespace
}  // namespace anyccl
