#include "platform/bootstrap/places.hpp"

#include <algorithm>
#include <limits>

namespace anyccl {
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
struct Crew {
  CpuSet cpus;
  std::vector<std::size_t> ranks;
};

std::vector<Crew> crews_of(const std::vector<Hello>& members, const std::vector<int>& host_of,
                           int host) {
  std::vector<Crew> crews;
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (host_of[r] != host) continue;
    const auto same = std::find_if(crews.begin(), crews.end(),
                                   [&](const Crew& c) { return c.cpus == members[r].cpus; });
    (same == crews.end() ? crews.emplace_back(Crew{members[r].cpus, {}}) : *same)
        .ranks.push_back(r);
  }
  return crews;
}

/// CPUs and the ranks that compete for them.
struct Sharing {
  CpuSet cpus;
  std::size_t ranks = 0;

  void add(const Crew& crew) {
    cpus |= crew.cpus;
    ranks += crew.ranks.size();
  }
  int cores_each() const {
    return static_cast<int>(cpus.count() / std::max<std::size_t>(1, ranks));
  }
  int ranks_each() const {
    return static_cast<int>(ranks / std::max<std::size_t>(1, cpus.count()));
  }
};

void share_cores(const std::vector<Hello>& members, Places& places) {
  places.cores_each.resize(members.size());
  places.ranks_per_core = std::numeric_limits<int>::max();
  const int hosts = 1 + *std::max_element(places.host_of.begin(), places.host_of.end());
  for (int host = 0; host < hosts; ++host) {
    const std::vector<Crew> crews = crews_of(members, places.host_of, host);
    const auto here =
        static_cast<int>(std::count(places.host_of.begin(), places.host_of.end(), host));
    for (const Crew& crew : crews) {
      Sharing all, inside;  // with whom CPUs are shared; who has no others
      for (const Crew& other : crews) {
        if ((crew.cpus & other.cpus).any()) all.add(other);
        if ((other.cpus & ~crew.cpus).none()) inside.add(other);
      }
      for (const std::size_t r : crew.ranks) {
        int cores = std::min(all.cores_each(), inside.cores_each()), ranks = all.ranks_each();
        if (const auto quota = static_cast<int>(members[r].quota); quota > 0) {
          cores = std::min(cores, quota / here);
          ranks = std::max(ranks, here / quota);
        }
        places.cores_each[r] = cores;
        places.ranks_per_core = std::min(places.ranks_per_core, std::max(1, ranks));
      }
    }
  }
}

}  // namespace

bool Places::several_hosts() const {
  return divides(host_of);
}

Places places_of(const std::vector<Hello>& members) {
  Places places;
  places.host_of = places.near_of = number_hosts(members);
  share_cores(members, places);
  if (places.several_hosts()) return places;
  places.near_of = divide(members, &Hello::near_cache);
  if (!divides(places.near_of)) places.near_of = divide(members, &Hello::near_node);
  return places;
}

}  // namespace anyccl
