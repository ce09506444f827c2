// Leaders of hosts hear the root server's answer from each other. Here each rank has a host of its
// own; the server tells two of them, and each of these two others.

#include <gtest/gtest.h>

#include "large_group.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using std::chrono::milliseconds;

constexpr int kRanks = 11;

class RelayedJoin : public LargeGroup {
 protected:
  void SetUp() override { start({2, 2}); }

  /// As if on a host of its own, so that other ranks reach it over TCP.
  static Member member_of(int rank) {
    return make_member(rank, kRanks, "", {"one boot", 7, std::to_string(rank)});
  }
  Result<Group> join_as(int rank, Deadline deadline = soon()) {
    const Member member = member_of(rank);
    return join_at(meeting_, member.hello, deadline, &member.listeners);
  }
  void expect_all_join() {
    std::vector<Secret> secrets(kRanks);
    in_threads(kRanks, [&](int rank) {
      const Result<Group> group = join_as(rank);
      ASSERT_OK(group.status());
      ASSERT_EQ(group->members.size(), static_cast<std::size_t>(kRanks));
      secrets[static_cast<std::size_t>(rank)] = group->secret;
    });
    for (const Secret& secret : secrets) EXPECT_EQ(secret, secrets[0]);
  }
  /// Joins as all of `ranks` at once; each must fail, saying `text`.
  void expect_all_hear(const std::vector<int>& ranks, Code code, std::string_view text,
                       Deadline deadline = soon()) {
    in_threads(static_cast<int>(ranks.size()), [&](int i) {
      const Result<Group> group = join_as(ranks[static_cast<std::size_t>(i)], deadline);
      EXPECT_EQ(group.status().code(), code) << message_of(group);
      EXPECT_TRUE(contains(message_of(group), text)) << message_of(group);
    });
  }

  /// Waits at `teller` as `member`, as if the root server had sent it there.
  Connection wait_at(const Member& teller, const Member& member) {
    Connection there = call({{teller.listeners.unix_name, {}}}, member.hello.rank, kToRelay);
    send(there, Frame::hello, bytes_of(hello_frame_of(member)));
    return there;
  }
  /// The rank to which the root server sends `member`, if it does.
  std::optional<Hello> teller_of(const Member& member, std::vector<Connection>& open) {
    open.push_back(call(meeting_.endpoints, member.hello.rank, kToRoot));
    send(open.back(), Frame::hello, bytes_of(hello_frame_of(member)));
    return receive_place(open.back());
  }
  /// Says hello as `member` again and again until the server has somebody else who can tell it.
  std::vector<Connection> wait_for_a_teller(const Member& member) {
    std::vector<Connection> open;
    while (!teller_of(member, open)) {
    }
    return open;
  }
};

TEST_F(RelayedJoin, gives_everyone_the_same_table) {
  expect_all_join();
}

TEST_F(RelayedJoin, works_through_a_chain_of_all_ranks) {
  start({1, 1});
  expect_all_join();
}

TEST_F(RelayedJoin, works_over_unix_sockets_of_one_user) {
  start({2, 2}, Trust::same_user);
  expect_all_join();
}

TEST_F(RelayedJoin, of_ranks_that_tell_nobody_is_told_by_the_server) {
  in_threads(kRanks, [&](int rank) {
    EXPECT_OK(join_at(meeting_, member_of(rank).hello, soon()).status());
  });
}

TEST_F(RelayedJoin, a_rank_that_cannot_be_reached_is_left_out) {
  in_threads(kRanks, [&](int rank) {
    const Hello hello = member_of(rank).hello;  // whose listeners are closed
    const Member other = member_of(rank);
    const bool hidden = rank == 0;
    EXPECT_OK(join_at(meeting_, hidden ? hello : other.hello, soon(), &other.listeners).status());
  });
}

TEST_F(RelayedJoin, names_missing_ranks_to_everyone) {
  expect_all_hear({0, 1, 2, 3, 4, 5, 6, 7, 8, 10}, Code::timeout, "missing: 9",
                  Deadline::in(milliseconds(2000)));
}

TEST_F(RelayedJoin, tells_everyone_of_a_rank_that_joins_twice) {
  expect_all_hear({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9}, Code::invalid_usage, "rank 9 joined twice");
}

TEST_F(RelayedJoin, tells_everyone_of_a_rank_that_leaves_the_rank_that_is_to_tell_it) {
  start({2, 1});  // so that each of nine may be needed
  const Member teller = member_of(0);
  std::thread leaver([&] { static_cast<void>(wait_at(teller, member_of(9))); });
  in_threads(9, [&](int rank) {
    const Result<Group> group =
        rank == 0 ? join_at(meeting_, teller.hello, soon(), &teller.listeners) : join_as(rank);
    EXPECT_EQ(group.status().code(), Code::remote_error) << message_of(group);
    EXPECT_TRUE(contains(message_of(group), "rank 9 left")) << message_of(group);
  });
  leaver.join();
}

TEST_F(RelayedJoin, tells_a_leader_that_the_server_was_stopped) {
  start({1, 2});
  std::thread other([&] {
    std::vector<Connection> open = wait_for_a_teller(member_of(10));
    std::thread stopper([&] { server_->stop(); });
    EXPECT_OK(wait_for(open.front().socket.get(), POLLIN, soon(), "root"));
    open.clear();
    stopper.join();
  });
  expect_all_hear({4}, Code::aborted, "stopped before all ranks had joined");
  other.join();
}

TEST_F(RelayedJoin, of_another_secret_is_refused) {
  std::thread member([&] {
    expect_all_hear({0}, Code::timeout, "knows another secret", Deadline::in(milliseconds(2000)));
  });
  RendezvousAddress wrong = meeting_;
  wrong.secret = *Secret::random();
  const Member other = member_of(5);
  const Result<Group> group = join_at(wrong, other.hello, soon(), &other.listeners);
  EXPECT_EQ(group.status().code(), Code::invalid_argument);
  EXPECT_TRUE(contains(message_of(group), "another secret")) << message_of(group);
  member.join();
}

}  // namespace
}  // namespace anyccl::bootstrap
