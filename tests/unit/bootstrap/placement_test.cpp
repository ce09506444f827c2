// Which ranks are near each other, and which have a core of their own.

#include "platform/bootstrap/group/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "platform/bootstrap/group/hosts.hpp"
#include "random_bytes.hpp"
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

TEST(RanksNear, are_counted_by_process_host_and_machine) {
  auto members = bound_to({"0", "0", "0", "0", "0"});
  for (std::size_t r = 0; r < members.size(); ++r) members[r].pid = r < 2 ? 1 : 9;
  members[3].network_namespace = members[4].network_namespace = 1;
  members[4].boot_id[0] = static_cast<std::byte>(1);
  const RanksNear near = ranks_near(members[0], members);
  EXPECT_EQ(near.in_process, 2);
  EXPECT_EQ(near.on_host, 3);
  EXPECT_EQ(near.in_containers_beside, 1);
  EXPECT_EQ(ranks_near(members[4], members).in_containers_beside, 0);
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

/// host_of by its definition.
Ints hosts_by_comparison(const std::vector<Hello>& members) {
  Ints host_of;
  std::vector<const Hello*> firsts;
  for (const Hello& member : members) {
    const auto same = std::find_if(firsts.begin(), firsts.end(),
                                   [&](const Hello* first) { return same_host(*first, member); });
    host_of.push_back(static_cast<int>(same - firsts.begin()));
    if (same == firsts.end()) firsts.push_back(&member);
  }
  return host_of;
}

int share_of(std::size_t cpus, std::size_t ranks) {
  return static_cast<int>(cpus / ranks);
}

/// cores_each of one rank, and how many ranks at least share one of its cores, by their
/// definitions.
std::pair<int, int> cores_by_comparison(const std::vector<Hello>& members, std::size_t rank) {
  const probe::CpuSet& own = members[rank].cpus;
  probe::CpuSet all, inside;
  std::size_t all_ranks = 0, inside_ranks = 0, here = 0;
  for (const Hello& other : members) {
    if (!same_host(members[rank], other)) continue;
    const bool overlaps = (own & other.cpus).any(), lies_inside = (other.cpus & ~own).none();
    ++here;
    if (overlaps) all |= other.cpus;
    if (lies_inside) inside |= other.cpus;
    all_ranks += overlaps ? 1 : 0;
    inside_ranks += lies_inside ? 1 : 0;
  }
  int cores = std::min(share_of(all.count(), all_ranks), share_of(inside.count(), inside_ranks));
  int ranks = share_of(all_ranks, all.count());
  if (const std::size_t quota = members[rank].quota; quota > 0) {
    cores = std::min(cores, share_of(quota, here));
    ranks = std::max(ranks, share_of(here, quota));
  }
  return {cores, std::max(1, ranks)};
}

TEST(Placement, of_random_groups_is_what_comparing_all_ranks_says) {
  std::mt19937 random = test::seeded();
  const auto below = [&](unsigned limit) { return static_cast<std::uint32_t>(random() % limit); };
  const char* const lists[] = {"0-7", "0-3", "4-7", "2", "3-5", "7"};
  for (int round = 0; round < 50; ++round) {
    std::vector<Hello> members(1 + below(60), make_member(0, 1).hello);
    const unsigned hosts = 1 + below(6), quotas = below(2) == 0 ? 1 : 4;
    for (Hello& member : members) {
      member.boot_id[3] = static_cast<std::byte>(below(hosts));
      member.host_id[15] = static_cast<std::byte>(below(2));
      member.network_namespace = below(2);
      member.cpus = probe::cpus_in(lists[below(std::size(lists))]);
      member.quota = below(quotas);
    }
    const Placement placement = placement_of(members);
    ASSERT_EQ(placement.host_of, hosts_by_comparison(members));
    int ranks_per_core = std::numeric_limits<int>::max();
    for (std::size_t r = 0; r < members.size(); ++r) {
      const auto [cores, ranks] = cores_by_comparison(members, r);
      EXPECT_EQ(placement.cores_each[r], cores) << "rank " << r;
      ranks_per_core = std::min(ranks_per_core, ranks);
    }
    EXPECT_EQ(placement.ranks_per_core, ranks_per_core);
  }
}

}  // namespace
}  // namespace anyccl::bootstrap
