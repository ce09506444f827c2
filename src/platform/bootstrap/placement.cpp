#include "platform/bootstrap/placement.hpp"

#include <algorithm>
#include <limits>

namespace anyccl::bootstrap {
namespace {

std::vector<int> number_hosts(const std::vector<Hello>& members) {
  std::vector<int> host_of;
  std::vector<std::size_t> first;
  for (std::size_t r = 0; r < members.size(); ++r) {
    std::size_t h = 0;
    while (h < first.size() && !same_host(members[first[h]], members[r])) ++h;
    if (h == first.size()) first.push_back(r);
    host_of.push_back(static_cast<int>(h));
  }
  return host_of;
}

/// The ranks by a number that each has; all in group 0 if one has none, or if that is no division.
std::vector<int> divide(const std::vector<Hello>& members, std::uint32_t Hello::*number) {
  std::vector<std::uint32_t> known;
  std::vector<int> group_of;
  for (const Hello& member : members) {
    if (member.*number == 0) return std::vector<int>(members.size(), 0);
    const auto at = std::find(known.begin(), known.end(), member.*number);
    group_of.push_back(static_cast<int>(at - known.begin()));
    if (at == known.end()) known.push_back(member.*number);
  }
  return known.size() < members.size() ? group_of : std::vector<int>(members.size(), 0);
}

bool divides(const std::vector<int>& group_of) {
  return std::any_of(group_of.begin(), group_of.end(), [](int group) { return group > 0; });
}

/// Ranks of one host that may run on the same CPUs.
struct RanksByCpuSet {
  probe::CpuSet cpus;
  std::vector<std::size_t> ranks;
};

std::vector<RanksByCpuSet> ranks_by_cpu_set(const std::vector<Hello>& members,
                                            const std::vector<int>& host_of, int host) {
  std::vector<RanksByCpuSet> sets;
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (host_of[r] != host) continue;
    const auto same = std::find_if(sets.begin(), sets.end(), [&](const RanksByCpuSet& c) {
      return c.cpus == members[r].cpus;
    });
    (same == sets.end() ? sets.emplace_back(RanksByCpuSet{members[r].cpus, {}}) : *same)
        .ranks.push_back(r);
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

void share_cores(const std::vector<Hello>& members, Placement& placement) {
  placement.cores_each.resize(members.size());
  placement.ranks_per_core = std::numeric_limits<int>::max();
  const int hosts = 1 + *std::max_element(placement.host_of.begin(), placement.host_of.end());
  for (int host = 0; host < hosts; ++host) {
    const std::vector<RanksByCpuSet> sets = ranks_by_cpu_set(members, placement.host_of, host);
    const auto here =
        static_cast<int>(std::count(placement.host_of.begin(), placement.host_of.end(), host));
    for (const RanksByCpuSet& set : sets) {
      // Of the ranks that share CPUs with these, and of those among them that have no other CPUs.
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
  placement.near_of = divide(members, &Hello::near_cache);
  if (!divides(placement.near_of)) placement.near_of = divide(members, &Hello::near_node);
  return placement;
}

}  // namespace anyccl::bootstrap
