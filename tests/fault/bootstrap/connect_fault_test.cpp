// What goes wrong while peers connect to each other.

#include <gtest/gtest.h>

#include "unauthenticated.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using std::chrono::milliseconds;

class ConnectFault : public testing::Test {
 protected:
  void make_group(int size) {
    for (int r = 0; r < size; ++r) ranks_.push_back(make_member(r, size));
    for (const Member& member : ranks_) hellos_.push_back(member.hello);
  }
  Result<std::vector<PeerSocket>> connect(int rank, const Secret& secret, bool force_tcp = false,
                                          Deadline deadline = soon()) {
    return connect_all(ranks_[static_cast<std::size_t>(rank)].listeners, hellos_, Rank{rank},
                       secret, force_tcp, deadline);
  }
  /// All ranks connect, and each socket leads to the right one.
  void expect_everyone_connects(bool force_tcp = false) {
    in_threads(static_cast<int>(ranks_.size()), [&](int rank) {
      const Result<std::vector<PeerSocket>> peers = connect(rank, secret_, force_tcp);
      ASSERT_OK(peers.status());
      expect_peers_answer(rank, *peers);
    });
  }

  /// Who proves to know the secret is turned away all the same.
  static void expect_turned_away(Dial dial) {
    for (const Deadline deadline = soon(); !contains(dial.problems(), "the peer closed");) {
      ASSERT_FALSE(deadline.passed());
      ASSERT_OK(dial.advance());
      ASSERT_FALSE(dial.done());
      std::vector<pollfd> entries;
      dial.append_wanted(entries);
      ::poll(entries.data(), entries.size(), dial.poll_ms(10));
    }
  }

  std::vector<Member> ranks_;
  std::vector<Hello> hellos_;
  Secret secret_ = *Secret::random();
};

TEST_F(ConnectFault, silent_and_garbage_connections_do_not_disturb_the_ranks) {
  std::mt19937 random = seeded();
  for (const bool force_tcp : {false, true}) {
    ranks_.clear();
    hellos_.clear();
    make_group(4);
    std::vector<UniqueFd> open;
    for (const Member& member : ranks_)
      for (UniqueFd& socket : pester(endpoints_of(member.listeners), random))
        open.push_back(std::move(socket));
    expect_everyone_connects(force_tcp);
  }
}

TEST_F(ConnectFault, a_flood_of_silent_connections_does_not_lock_the_ranks_out) {
  make_group(2);
  std::vector<UniqueFd> open;
  for (int i = 0; i < 1500; ++i) open.push_back(connect_to(endpoints_of(ranks_[0].listeners)[0]));
  expect_everyone_connects();
}

TEST_F(ConnectFault, connections_that_claim_wrong_ranks_are_dropped) {
  make_group(3);
  std::thread victim([&] { EXPECT_OK(connect(1, secret_).status()); });
  for (const std::uint32_t claim : {0U, 1U, 99U})
    expect_turned_away(Dial(secret_, {endpoints_of(ranks_[1].listeners), claim, 1}));
  in_threads(2, [&](int i) { EXPECT_OK(connect(2 * i, secret_).status()); });
  victim.join();
}

TEST_F(ConnectFault, a_second_connection_of_a_rank_is_dropped) {
  make_group(3);
  std::thread lower([&] { EXPECT_TRUE(connect(0, secret_).ok()); });
  const Result<Connection> first =
      dial_to_end(Dial(secret_, {endpoints_of(ranks_[0].listeners), 1, 0}));
  EXPECT_OK(first.status());
  expect_turned_away(Dial(secret_, {endpoints_of(ranks_[0].listeners), 1, 0}));
  Result<Connection> third = dial_to_end(Dial(secret_, {endpoints_of(ranks_[0].listeners), 2, 0}));
  EXPECT_OK(third.status());
  lower.join();
}

TEST_F(ConnectFault, missing_peers_are_named) {
  make_group(4);
  in_threads(2, [&](int i) {
    const int rank = 1 + i;
    const auto peers = connect(rank, secret_, false, Deadline::in(milliseconds(200)));
    EXPECT_EQ(peers.status().code(), Code::timeout);
    EXPECT_TRUE(
        contains(message_of(peers), "connected to 1 of 3 other ranks in time; missing: 0, 3"))
        << message_of(peers);
  });
}

TEST_F(ConnectFault, a_rank_with_another_secret_is_told_and_not_let_in) {
  make_group(2);
  std::thread lower([&] {
    EXPECT_EQ(connect(0, secret_, false, Deadline::in(milliseconds(2000))).status().code(),
              Code::timeout);
  });
  const auto peers = connect(1, *Secret::random());
  EXPECT_EQ(peers.status().code(), Code::invalid_argument);
  EXPECT_TRUE(contains(message_of(peers), "another secret")) << message_of(peers);
  lower.join();
}

TEST_F(ConnectFault, tcp_takes_over_where_unix_sockets_do_not_work) {
  make_group(2);
  ranks_[0].listeners.unix_socket.reset();
  in_threads(2, [&](int rank) {
    const auto peers = connect(rank, secret_);
    ASSERT_OK(peers.status());
    EXPECT_FALSE(peers->front().local);
    expect_peers_answer(rank, *peers);
  });
}

TEST_F(ConnectFault, a_rank_outside_the_group_is_refused) {
  make_group(1);
  EXPECT_EQ(
      connect_all(ranks_[0].listeners, hellos_, Rank{1}, secret_, false, soon()).status().code(),
      Code::invalid_argument);
}

}  // namespace
}  // namespace anyccl::bootstrap
