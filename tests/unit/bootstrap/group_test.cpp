// Ranks find each other through a unique id and end up with one socket per pair.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <chrono>

#include "ranks.hpp"

namespace anyccl {
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
      EXPECT_TRUE(peer.same_process);
      EXPECT_EQ(peer.pid, tcp ? 0 : ::getpid());
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

}  // namespace
}  // namespace anyccl
