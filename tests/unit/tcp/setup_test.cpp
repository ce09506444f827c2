#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;

Status problem_with(Rank me, std::initializer_list<int> ranks, tcp::TcpOptions options = {}) {
  std::vector<UniqueFd> others;
  std::vector<tcp::TcpPeer> peers;
  for (const int r : ranks) {
    auto [one, other] = connected(Wire::loopback);
    peers.push_back({Rank{r}, std::move(one)});
    others.push_back(std::move(other));
  }
  return tcp::make_tcp_transport(me, std::move(peers), std::move(options)).status();
}

TEST(TcpSetup, lists_its_peers_in_ascending_order) {
  std::vector<tcp::TcpPeer> peers;
  std::vector<UniqueFd> others;
  for (const int r : {5, 0, 3}) {
    auto [one, other] = connected(Wire::unix_socket);
    peers.push_back({Rank{r}, std::move(one)});
    others.push_back(std::move(other));
  }
  const auto made = tcp::make_tcp_transport(Rank{1}, std::move(peers), {});
  ASSERT_TRUE(made.ok());
  const auto ranks = (*made)->peers();
  EXPECT_EQ(std::vector<Rank>(ranks.begin(), ranks.end()),
            (std::vector{Rank{0}, Rank{3}, Rank{5}}));
}

TEST(TcpSetup, refuses_a_peer_that_is_given_twice) {
  EXPECT_EQ(problem_with(Rank{0}, {1, 2, 1}).code(), Code::invalid_argument);
}

TEST(TcpSetup, refuses_this_rank_as_its_peer) {
  EXPECT_EQ(problem_with(Rank{1}, {1, 2}).code(), Code::invalid_argument);
}

TEST(TcpSetup, refuses_a_congestion_control_that_does_not_exist) {
  const Status problem = problem_with(Rank{0}, {1}, {.congestion = "no_such_control"});
  EXPECT_EQ(problem.code(), Code::invalid_argument);
  EXPECT_NE(problem.message().find("ANYCCL_TCP_CONGESTION=no_such_control"),
            std::string_view::npos);
}

TEST(TcpSetup, uses_and_names_the_congestion_control_it_is_told) {
  const auto ranks = group(2, Wire::loopback, {.congestion = "reno"});  // Every system allows it.
  EXPECT_EQ(ranks[0]->name(), "tcp/reno");
}

TEST(TcpSetup, says_when_the_connection_is_a_unix_socket) {
  EXPECT_EQ(group(2, Wire::unix_socket)[0]->name(), "tcp/unix");
}

}  // namespace
}  // namespace anyccl
