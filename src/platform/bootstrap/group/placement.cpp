#include "platform/bootstrap/group/placement.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>

#include "platform/bootstrap/group/hosts.hpp"

namespace anyccl::bootstrap {
namespace {

/// The ranks by a number that each has; all in group 0 if one has none, or if that is no division.
std::vector<int> group_numbers_of(const std::vector<Hello>& members, std::uint32_t Hello::*number) {
  std::unordered_map<std::uint32_t, int> groups;
  std::vector<int> group_of;
  for (const Hello& member : members) {
    if (member.*number == 0) return std::vector<int>(members.size(), 0);
    const int next = static_cast<int>(groups.size());
    group_of.push_back(groups.try_emplace(member.*number, next).first->second);
  }
  return groups.size() < members.size() ? group_of : std::vector<int>(members.size(), 0);
}

bool divides(const std::vector<int>& group_of) {
  return std::any_of(group_of.begin(), group_of.end(), [](int group) { return group > 0; });
}

std::vector<std::vector<std::size_t>> ranks_by_host(const std::vector<int>& host_of) {
  std::vector<std::vector<std::size_t>> ranks;
  for (std::size_t r = 0; r < host_of.size(); ++r) {
    const auto host = static_cast<std::size_t>(host_of[r]);
    if (host == ranks.size()) ranks.emplace_back();
    ranks[host].push_back(r);
  }
  return ranks;
}

/// Ranks of one host that may run on the same CPUs.
struct RanksByCpuSet {
  probe::CpuSet cpus;
  std::vector<std::size_t> ranks;
};

std::vector<RanksByCpuSet> ranks_by_cpu_set(const std::vector<Hello>& members,
                                            std::span<const std::size_t> ranks_here) {
  std::unordered_map<probe::CpuSet, std::size_t> numbers;
  std::vector<RanksByCpuSet> sets;
  for (const std::size_t r : ranks_here) {
    const std::size_t set = numbers.try_emplace(members[r].cpus, sets.size()).first->second;
    if (set == sets.size()) sets.push_back({members[r].cpus, {}});
    sets[set].ranks.push_back(r);
  }
  return sets;
}

/// CPUs and the ranks that compete for them.
struct CpuPool {
  probe::CpuSet cpus;
  std::size_t ranks = 0;

  void add(const RanksByCpuSet& set) {
    cpus |= set.cpus;
    ranks += set.ranks.size();
  }
  int cores_each() const {
    return static_cast<int>(cpus.count() / std::max<std::size_t>(1, ranks));
  }
  int ranks_each() const {
    return static_cast<int>(ranks / std::max<std::size_t>(1, cpus.count()));
  }
};

void share_cores_of_host(const std::vector<Hello>& members, std::span<const std::size_t> ranks_here,
                         Placement& placement) {
  const std::vector<RanksByCpuSet> sets = ranks_by_cpu_set(members, ranks_here);
  const auto here = static_cast<int>(ranks_here.size());
  for (const RanksByCpuSet& set : sets) {
    // `all` has the ranks that share CPUs with these, `inside` those of them without other CPUs.
    CpuPool all, inside;
    for (const RanksByCpuSet& other : sets) {
      if ((set.cpus & other.cpus).any()) all.add(other);
      if ((other.cpus & ~set.cpus).none()) inside.add(other);
    }
    for (const std::size_t r : set.ranks) {
      int cores = std::min(all.cores_each(), inside.cores_each()), ranks = all.ranks_each();
      if (const auto quota = static_cast<int>(members[r].quota); quota > 0) {
        cores = std::min(cores, quota / here);
        ranks = std::max(ranks, here / quota);
      }
      placement.cores_each[r] = cores;
      placement.ranks_per_core = std::min(placement.ranks_per_core, std::max(1, ranks));
    }
  }
}

void share_cores(const std::vector<Hello>& members, Placement& placement) {
  placement.cores_each.resize(members.size());
  placement.ranks_per_core = std::numeric_limits<int>::max();
  for (const std::vector<std::size_t>& ranks_here : ranks_by_host(placement.host_of))
    share_cores_of_host(members, ranks_here, placement);
}

}  // namespace

bool Placement::several_hosts() const {
  return divides(host_of);
}

Placement placement_of(const std::vector<Hello>& members) {
  Placement placement;
  placement.host_of = placement.near_of = number_hosts(members);
  share_cores(members, placement);
  if (placement.several_hosts()) return placement;
  placement.near_of = group_numbers_of(members, &Hello::near_cache);
  if (!divides(placement.near_of)) placement.near_of = group_numbers_of(members, &Hello::near_node);
  return placement;
}

}  // namespace anyccl::bootstrap
