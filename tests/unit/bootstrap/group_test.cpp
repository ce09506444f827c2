// Ranks find each other through a unique id and end up with one socket per pair.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <chrono>

#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

struct Case {
  int size;
  bool force_tcp;
};

class Group_of : public testing::TestWithParam<Case> {};

TEST_P(Group_of, ranks_in_one_process_joins_and_connects_every_pair) {
  const auto [size, force_tcp] = GetParam();
  Result<Rendezvous> meeting = make_rendezvous("");
  ASSERT_OK(meeting.status());
  in_threads(size, [&, n = size, tcp = force_tcp](int rank) {
    const Member member = make_member(rank, n);
    Result<Connected> connected = join_and_connect(meeting->id, member, tcp, soon());
    ASSERT_OK(connected.status());
    ASSERT_EQ(connected->peers.size(), static_cast<std::size_t>(n - 1));
    int expected = 0;
    for (const PeerSocket& peer : connected->peers) {
      if (expected == rank) ++expected;
      EXPECT_EQ(index(peer.rank), expected++);
      EXPECT_EQ(peer.local, !tcp);
      EXPECT_EQ(peer.same_process, !tcp) << "the kernel says so of unix sockets only";
    }
    expect_peers_answer(rank, connected->peers);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Group_of,
                         testing::Values(Case{1, false}, Case{2, false}, Case{3, false},
                                         Case{8, false}, Case{32, false}, Case{64, false},
                                         Case{1, true}, Case{2, true}, Case{3, true}, Case{8, true},
                                         Case{32, true}),
                         [](const auto& test) {
                           return std::to_string(test.param.size) +
                                  (test.param.force_tcp ? "_tcp" : "_unix");
                         });

/// Joins and connects ranks at the given hosts; one list of peers per rank.
std::vector<std::vector<PeerSocket>> connect_at(const std::vector<HostIdentity>& hosts) {
  std::vector<std::vector<PeerSocket>> peers(hosts.size());
  Result<Rendezvous> meeting = make_rendezvous("");
  EXPECT_TRUE(meeting.ok()) << message_of(meeting);
  const int size = static_cast<int>(hosts.size());
  in_threads(size, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Member member = make_member(rank, size, "", hosts[r]);
    Result<Connected> connected = join_and_connect(meeting->id, member, false, soon());
    ASSERT_OK(connected.status());
    peers[r] = std::move(connected->peers);
  });
  return peers;
}

TEST(Connect, uses_unix_sockets_only_between_ranks_of_one_host) {
  const auto peers = connect_at({{"boot", 1, ""}, {"boot", 1, ""}, {"boot", 1, "elsewhere"}});
  ASSERT_EQ(peers[0].size(), 2U);
  EXPECT_TRUE(peers[0][0].local);
  EXPECT_FALSE(peers[0][1].local);
  ASSERT_EQ(peers[2].size(), 2U);
  EXPECT_FALSE(peers[2][0].local);
  EXPECT_FALSE(peers[2][1].local);
}

TEST(Connect, gives_sockets_that_do_not_block_delay_or_survive_exec) {
  for (const auto& peers : connect_at({{"boot", 1, ""}, {"boot", 1, "elsewhere"}})) {
    ASSERT_EQ(peers.size(), 1U);
    const int fd = peers[0].fd.get();
    EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    int no_delay = 0;
    socklen_t size = sizeof no_delay;
    ASSERT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
    EXPECT_NE(no_delay, 0);
  }
}

TEST(Join, gives_every_member_one_secret_that_is_not_the_ids) {
  Result<Rendezvous> meeting = make_rendezvous("");
  ASSERT_OK(meeting.status());
  std::vector<Secret> secrets(3);
  in_threads(3, [&](int rank) {
    Result<Group> group = join(meeting->id, make_member(rank, 3).hello, soon());
    ASSERT_OK(group.status());
    secrets[static_cast<std::size_t>(rank)] = group->secret;
  });
  EXPECT_EQ(secrets[0], secrets[1]);
  EXPECT_EQ(secrets[0], secrets[2]);
  EXPECT_NE(secrets[0], Secret(meeting->id.secret));
}

}  // namespace
}  // namespace anyccl::bootstrap
