#include "platform/transport/tcp/tcp_transport.hpp"
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
  const auto context = std::make_shared<fabric::Context>(me, 0);
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

/// A link over TCP with this congestion control.
Result<std::shared_ptr<fabric::Link>> link_with(const std::string& congestion) {
  auto [one, other] = connected(Wire::loopback);
  return fabric::Link::make(std::move(one), tcp::tcp_socket(congestion));
}

TEST(SocketSetup, refuses_a_congestion_control_that_does_not_exist) {
  const Status problem = link_with("no_such_control").status();
  EXPECT_EQ(problem.code(), Code::invalid_argument);
  EXPECT_NE(problem.message().find("ANYCCL_TCP_CONGESTION=no_such_control"),
            std::string_view::npos);
}

TEST(SocketSetup, uses_and_names_the_congestion_control_it_is_told) {
  const auto link = link_with("reno");  // Every system allows it.
  ASSERT_TRUE(link.ok());
  EXPECT_EQ((*link)->name(), "tcp/reno");
}

}  // namespace
}  // namespace anyccl
