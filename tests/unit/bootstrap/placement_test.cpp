// Which ranks are near each other, and which have a core of their own.

#include "platform/bootstrap/placement.hpp"

#include <gtest/gtest.h>

#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using test::make_member;

/// Ranks of one host, bound to the CPUs in these lists.
std::vector<Hello> bound_to(const std::vector<std::string_view>& lists) {
  std::vector<Hello> members;
  for (const std::string_view list : lists) {
    members.push_back(make_member(0, 1).hello);
    members.back().cpus = probe::cpus_in(list);
  }
  return members;
}

using Ints = std::vector<int>;

TEST(Placement, ranks_that_are_not_bound_share_all_cores) {
  EXPECT_EQ(placement_of(bound_to({"0-7", "0-7"})).cores_each, Ints({4, 4}));
  const Placement full = placement_of(bound_to({"0-1", "0-1", "0-1"}));
  EXPECT_EQ(full.cores_each, Ints({0, 0, 0}));
  EXPECT_EQ(full.ranks_per_core, 1) << "not 2 for each";
  EXPECT_EQ(placement_of(bound_to({"0", "0", "0", "0"})).ranks_per_core, 4);
}

/// As mpirun --bind-to core does it.
TEST(Placement, ranks_that_are_bound_to_a_core_each_have_one) {
  const Placement placement = placement_of(bound_to({"0", "1", "2", "3"}));
  EXPECT_EQ(placement.cores_each, Ints({1, 1, 1, 1}));
  EXPECT_EQ(placement.ranks_per_core, 1);
}

TEST(Placement, ranks_that_are_bound_to_one_core_share_it) {
  EXPECT_EQ(placement_of(bound_to({"0", "0", "1-4"})).cores_each, Ints({0, 0, 4}));
  EXPECT_EQ(placement_of(bound_to({"0", "0", "1-4"})).ranks_per_core, 1);
  EXPECT_EQ(placement_of(bound_to({"0", "0", "0-7"})).cores_each, Ints({0, 0, 2}));
}

TEST(Placement, ranks_that_share_a_part_of_their_cores_count_all_of_them) {
  EXPECT_EQ(placement_of(bound_to({"0-1", "1-2"})).cores_each, Ints({1, 1}));
}

TEST(Placement, a_quota_is_shared_by_the_ranks_of_a_host) {
  auto members = bound_to({"0-15", "0-15", "0-15"});
  for (Hello& member : members) member.quota = 2;
  EXPECT_EQ(placement_of(members).cores_each, Ints({0, 0, 0}));
  for (Hello& member : members) member.quota = 1;
  EXPECT_EQ(placement_of(members).ranks_per_core, 3);
}

TEST(Placement, hosts_share_no_cores) {
  auto members = bound_to({"0", "0"});
  members[1].network_namespace = 1;
  const Placement placement = placement_of(members);
  EXPECT_EQ(placement.host_of, Ints({0, 1}));
  EXPECT_EQ(placement.near_of, Ints({0, 1}));
  EXPECT_TRUE(placement.several_hosts());
  EXPECT_EQ(placement.cores_each, Ints({1, 1}));
}

/// Ranks of one host with these caches and nodes near them.
Ints groups(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& near) {
  std::vector<Hello> members(near.size(), make_member(0, 1).hello);
  for (std::size_t r = 0; r < near.size(); ++r) {
    members[r].near_cache = near[r].first;
    members[r].near_node = near[r].second;
  }
  return placement_of(members).near_of;
}

TEST(Placement, ranks_of_one_host_are_grouped_by_cache_and_else_by_node) {
  EXPECT_EQ(groups({{9, 2}, {1, 1}, {9, 2}, {1, 1}}), Ints({0, 1, 0, 1}));
  EXPECT_EQ(groups({{1, 1}, {1, 1}, {1, 1}}), Ints({0, 0, 0})) << "one cache";
  EXPECT_EQ(groups({{0, 1}, {1, 1}, {9, 2}}), Ints({0, 0, 1})) << "the first has several";
  EXPECT_EQ(groups({{1, 1}, {2, 1}, {3, 2}}), Ints({0, 0, 1})) << "a cache each";
  EXPECT_EQ(groups({{1, 1}, {2, 2}, {3, 3}}), Ints({0, 0, 0})) << "all are far from all";
  EXPECT_EQ(groups({{0, 0}, {0, 0}}), Ints({0, 0})) << "nothing is known";
}

}  // namespace
}  // namespace anyccl::bootstrap
