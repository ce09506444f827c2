#include "adapter/known_links.hpp"

#include <thread>

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
  void connect(std::uint8_t session, std::uint8_t other_session) {
    Ends ends = connected_on_one_host();
    for (std::size_t r = 0; r < 2; ++r) {
      std::vector<PeerSocket> sockets(1);
      sockets[0].rank = Rank{static_cast<std::int32_t>(1 - r)};
      sockets[0].fd = std::move(ends[r]);
      sockets[0].local = true;
      auto made = make_links(std::move(sockets), {});
      require(made.ok(), "make_links");
      LinkIdentity identity{made->front().rank, {}};
      identity.session.fill(static_cast<std::byte>(r == 0 ? session : other_session));
      remember_links(group, *made, {identity});
      links[r].push_back(made->front().link);
    }
  }
  /// What both find who know these secrets.
  std::array<std::vector<PeerLink>, 2> find(std::array<bootstrap::Secret, 2> secrets) {
    std::array<std::vector<PeerLink>, 2> found;
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < 2; ++r)
      threads.emplace_back([&, r] {
        bootstrap::Group mine = group;
        mine.secret = secrets[r];
        auto result = find_links(mine, Rank{static_cast<std::int32_t>(r)}, false, patience());
        require(result.ok(), "find_links");
        found[r] = std::move(*result);
      });
    for (std::thread& thread : threads) thread.join();
    return found;
  }
  std::array<std::vector<PeerLink>, 2> find() { return find({group.secret, group.secret}); }

  bootstrap::Group group;
  std::array<std::vector<std::shared_ptr<fabric::Link>>, 2> links;
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
