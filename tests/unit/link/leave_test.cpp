#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;

Incoming message(int rank, std::uint32_t number, std::size_t bytes) {
  Incoming in;
  in.operation = 1;
  in.number = number;
  in.rank = static_cast<std::uint16_t>(rank);
  in.bytes = in.whole = bytes;
  return in;
}

struct SocketLeave : OnEachWire {};
ANYCCL_ON_EACH_WIRE(SocketLeave);

TEST_P(SocketLeave, in_the_middle_of_a_frame_is_death) {
  auto ranks = group(2, GetParam());
  const auto data = pattern(16 * kMiB, 1);
  publish_to(*ranks[0], 1, number_of(1), data);
  ASSERT_FALSE(ranks[0]->publications().settled());
  ranks[0].reset();
  wait_until(*ranks[1], [&] { return ranks[1]->state(Rank{0}) != PeerState::present; });
  EXPECT_EQ(ranks[1]->state(Rank{0}), PeerState::dead);
  EXPECT_EQ(ranks[1]->publications().poll(message(0, 0, data.size())), nullptr);
}

TEST_P(SocketLeave, does_not_lose_data_over_what_this_rank_never_read) {
  auto ranks = group(2, GetParam());
  publish_to(*ranks[0], 1, number_of(1), pattern(100'000, 1));
  publish_to(*ranks[1], 0, number_of(1), pattern(100'000, 2));
  ranks[0]->leave();
  ranks[0].reset();
  EXPECT_TRUE(equal(await(*ranks[1], message(0, 0, 100'000)), pattern(100'000, 1)));
  wait_until(*ranks[1], [&] { return ranks[1]->state(Rank{0}) != PeerState::present; });
  EXPECT_EQ(ranks[1]->state(Rank{0}), PeerState::left);
}

TEST_P(SocketLeave, ends_in_time_although_the_peer_does_not_read) {
  const auto ranks = group(2, GetParam());
  publish_to(*ranks[0], 1, number_of(1), pattern(16 * kMiB, 1));
  const auto start = Deadline::Clock::now();
  ranks[0]->leave();
  EXPECT_LT(Deadline::Clock::now() - start, std::chrono::seconds(10));
}

TEST_P(SocketLeave, works_while_everyone_sends) {
  run_ranks(3, GetParam(), [](int me, Transport& t) {
    for (std::uint32_t i = 0; i < 8; ++i)
      for (int other = 0; other < 3; ++other)
        if (other != me) publish_to(t, other, number_of(1, i), pattern(kMiB, i));
  });  // Nobody has read anything.
}

TEST_P(SocketLeave, lets_peers_publish_for_who_is_gone) {
  auto ranks = group(2, GetParam());
  ranks[0]->leave();
  ranks[0].reset();
  for (std::uint32_t i = 0; i < 20; ++i)
    publish_to(*ranks[1], 0, number_of(1, i), pattern(kMiB, i));
  wait_until(*ranks[1], [&] { return ranks[1]->publications().settled(); });
  EXPECT_TRUE(ranks[1]->check().ok());
  EXPECT_EQ(ranks[1]->state(Rank{0}), PeerState::left);
}

TEST_P(SocketLeave, lets_peers_publish_for_who_is_about_to_be_gone) {
  const auto ranks = group(2, GetParam());
  ranks[0]->leave();
  for (std::uint32_t i = 0; i < 20; ++i)
    publish_to(*ranks[1], 0, number_of(1, i), pattern(kMiB, i));
  wait_until(*ranks[1], [&] { return ranks[1]->publications().settled(); });
}

std::unique_ptr<Transport> connect(Wire wire, int me, int peer, UniqueFd socket) {
  std::vector<PeerSocket> peers;
  peers.push_back({Rank{peer}, std::move(socket)});
  return transport(wire, me, std::move(peers));
}

TEST_P(SocketLeave, delivers_what_was_published_although_the_process_exits_at_once) {
  auto [one, other] = connected(GetParam());
  constexpr std::uint32_t kNumbers = 6;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    other.reset();
    const auto rank_0 = connect(GetParam(), 0, 1, std::move(one));
    for (std::uint32_t i = 0; i < kNumbers; ++i)
      publish_to(*rank_0, 1, number_of(1, i), pattern(kMiB, i));
    rank_0->leave();
    ::_exit(0);
  }
  one.reset();  // The child's is the only one now.
  const auto rank_1 = connect(GetParam(), 1, 0, std::move(other));
  for (std::uint32_t i = 0; i < kNumbers; ++i) {
    const Incoming in = message(0, i, kMiB);
    ASSERT_TRUE(equal(await(*rank_1, in), pattern(kMiB, i))) << i;
    rank_1->publications().consumed(in);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace anyccl
