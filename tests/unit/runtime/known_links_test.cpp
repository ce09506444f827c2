#include "runtime/links/known_links.hpp"

#include "support/transports.hpp"

namespace anyccl {
namespace {

using namespace test;

bootstrap::Secret secret_of(std::byte digit) {
  std::array<std::byte, bootstrap::Secret::kBytes> bytes{};
  bytes.fill(digit);
  return bootstrap::Secret(bytes);
}

/// Two processes of one host that are sides of this one. Each test has names of its own.
struct TwoProcesses {
  TwoProcesses() {
    static std::uint8_t count = 0;
    group.secret = secret_of(std::byte{7});
    for (std::uint8_t r = 0; r < 2; ++r) {
      bootstrap::Hello hello;
      hello.rank = r;
      hello.size = 2;
      hello.process.fill(static_cast<std::byte>(++count));
      group.members.push_back(hello);
    }
  }
  /// A connection that both know; `other_session`: of rank 1's end, as a process between the two
  /// would make it.
  /// `knows`: the rank that comes to know it; -1: both.
  void connect(std::uint8_t session, std::uint8_t other_session, int knows = -1) {
    Ends ends = connected_on_one_host();
    for (std::size_t r = 0; r < 2; ++r) {
      std::vector<PeerSocket> sockets(1);
      sockets[0].rank = Rank{static_cast<std::int32_t>(1 - r)};
      sockets[0].fd = std::move(ends[r]);
      sockets[0].local = true;
      auto made = make_links(std::move(sockets), Rank{static_cast<std::int32_t>(r)}, {});
      require(made.ok(), "make_links");
      links[r].push_back(made->front().link);
      if (knows < 0 || static_cast<std::size_t>(knows) == r)
        remember(r, r == 0 ? session : other_session);
    }
  }
  void remember(std::size_t r, std::uint8_t session) {
    const Rank peer{static_cast<std::int32_t>(1 - r)};
    LinkIdentity identity{peer, {}};
    identity.session.fill(static_cast<std::byte>(session));
    remember_links(group.members, {{peer, links[r].back(), true, false}}, {identity});
  }
  /// What both find who know these secrets.
  std::array<std::vector<PeerLink>, 2> find(std::array<bootstrap::Secret, 2> secrets) {
    std::array<bootstrap::Group, 2> groups{group, group};
    std::array<std::unique_ptr<LinksOfGroup>, 2> sides;
    for (std::size_t r = 0; r < 2; ++r) {
      groups[r].secret = secrets[r];
      auto made = LinksOfGroup::find(groups[r], Rank{static_cast<std::int32_t>(r)}, false);
      require(made.ok(), "LinksOfGroup::find");
      sides[r] = std::move(*made);
    }
    const auto advance = [&] {
      for (auto& side : sides) require(side->advance().ok(), "advance");
    };
    advance();
    // Nothing waits: what one side sends the other has.
    for (int round = 0; round < 20 && sides[1]->tries(Rank{0}); ++round) advance();
    return {sides[0]->found(), sides[1]->found()};
  }
  std::array<std::vector<PeerLink>, 2> find() { return find({group.secret, group.secret}); }

  bootstrap::Group group;
  std::array<std::vector<std::shared_ptr<link::Link>>, 2> links;
};

TEST(KnownLinks, are_found_by_both) {
  TwoProcesses two;
  two.connect(1, 1);
  for (int again = 0; again < 3; ++again) {
    const auto found = two.find();
    for (std::size_t r = 0; r < 2; ++r) {
      ASSERT_EQ(found[r].size(), 1U);
      EXPECT_EQ(found[r][0].link, two.links[r][0]);
      EXPECT_EQ(found[r][0].rank, Rank{static_cast<std::int32_t>(1 - r)});
    }
  }
}

TEST(KnownLinks, are_not_for_those_who_do_not_know_the_secret) {
  TwoProcesses two;
  two.connect(1, 1);
  const auto found = two.find({secret_of(std::byte{7}), secret_of(std::byte{8})});
  EXPECT_TRUE(found[0].empty());
  EXPECT_TRUE(found[1].empty());
}

/// A process in the middle passes on what both say, but each of its links has a session of its own.
TEST(KnownLinks, do_not_lead_through_a_third_process) {
  TwoProcesses two;
  two.connect(1, 2);
  const auto found = two.find();
  EXPECT_TRUE(found[0].empty());
  EXPECT_TRUE(found[1].empty());
}

TEST(KnownLinks, that_one_side_has_closed_are_left_for_another) {
  TwoProcesses two;
  two.connect(1, 1);
  two.connect(2, 2);
  two.links[1][0].reset();
  const auto found = two.find();
  for (std::size_t r = 0; r < 2; ++r) {
    ASSERT_EQ(found[r].size(), 1U);
    EXPECT_EQ(found[r][0].link, two.links[r][1]);
  }
}

/// The communicator for which the link was made is being created at the same time.
TEST(KnownLinks, may_become_known_to_the_lower_rank_later) {
  TwoProcesses two;
  two.connect(1, 1, 1);  // rank 1 knows it
  auto leader = LinksOfGroup::find(two.group, Rank{1}, false);
  auto follower = LinksOfGroup::find(two.group, Rank{0}, false);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE((*leader)->advance().ok());
    ASSERT_TRUE((*follower)->advance().ok());
    EXPECT_TRUE((*leader)->tries(Rank{0}));
    EXPECT_FALSE((*follower)->has(Rank{1}));
  }
  two.remember(0, 1);
  for (const Deadline deadline = patience(); !(*leader)->has(Rank{0}) && !deadline.passed();) {
    ASSERT_TRUE((*leader)->advance().ok());
    ASSERT_TRUE((*follower)->advance().ok());
  }
  EXPECT_TRUE((*leader)->has(Rank{0}));
  EXPECT_TRUE((*follower)->has(Rank{1}));
}

/// Another one, of another thread, may find them, be used and end before it has opened its own
/// context.
TEST(KnownLinks, live_while_the_communicator_that_made_them_is_created) {
  TwoProcesses two;
  two.connect(1, 1);
  const std::shared_ptr<link::Link> link = two.links[0][0];
  const auto use_and_end = [&](link::ContextKey key) {
    auto channel = link->open(std::make_shared<link::Context>(Rank{0}, key), Rank{1});
    ASSERT_TRUE(channel.ok()) << channel.status().message();
    (*channel)->say_goodbye();
    (*channel)->close_last();
  };
  std::shared_ptr<void> claim = link->claim();
  use_and_end(5);
  EXPECT_TRUE(link->is_alive());
  use_and_end(6);
  claim.reset();
  EXPECT_FALSE(link->is_alive()) << "nobody uses it";
}

TEST(KnownLinks, are_none_where_none_was_made) {
  TwoProcesses two;
  const auto found = two.find();
  EXPECT_TRUE(found[0].empty());
  EXPECT_TRUE(found[1].empty());
}

TEST(KnownLinks, are_not_used_by_processes_with_several_ranks) {
  TwoProcesses two;
  two.connect(1, 1);
  bootstrap::Hello third = two.group.members[1];
  third.rank = 2;
  two.group.members.push_back(third);
  for (bootstrap::Hello& hello : two.group.members) hello.size = 3;
  const auto found = two.find();
  EXPECT_TRUE(found[0].empty());
  EXPECT_TRUE(found[1].empty());
}

}  // namespace
}  // namespace anyccl
