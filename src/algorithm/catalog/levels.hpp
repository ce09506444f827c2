#pragma once
// For algorithms that know who is near whom.

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {

/// The ranks of each host, both in the order of the ranks.
inline std::vector<PeerList> ranks_by_host(const Shape& s) {
  std::vector<int> ids;
  std::vector<PeerList> hosts;
  for (int r = 0; r < s.size; ++r) {
    const int id = s.host_of.empty() ? 0 : s.host_of[static_cast<std::size_t>(r)];
    const auto h = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
    if (h == ids.size()) ids.push_back(id), hosts.emplace_back();
    hosts[h].push_back(Rank{r});
  }
  return hosts;
}

/// How many groups of ranks there are that are near each other; 1: all, or nobody is near anybody.
inline std::size_t count_groups(const Shape& s) {
  const std::set<int> groups(s.host_of.begin(), s.host_of.end());
  return groups.size() > 1 && std::ssize(groups) < s.size ? groups.size() : 1;
}
inline bool has_groups(const Shape& s) {
  return count_groups(s) > 1;
}

/// The first of the lists with this rank in it.
inline const PeerList& list_with(const std::vector<PeerList>& lists, Rank me) {
  return *std::find_if(lists.begin(), lists.end(), [me](const PeerList& list) {
    return std::find(list.begin(), list.end(), me) != list.end();
  });
}

/// The most members that any of the lists has.
inline std::uint32_t largest(const std::vector<PeerList>& lists) {
  std::size_t most = 0;
  for (const PeerList& list : lists) most = std::max(most, list.size());
  return static_cast<std::uint32_t>(most);
}

/// The leader of a part among `ranks`.
inline Rank leader(const PeerList& ranks, std::uint32_t part) {
  return ranks[part % ranks.size()];
}

/// One level of a hierarchy, as a rank sees it that leads part path[i] at each level i below.
struct Level {
  std::uint32_t parts;  ///< Equal on all ranks; the most members that a group has here.
  std::function<PeerList(std::span<const std::uint32_t> path)> members;
};

/// Sums `range` over the members of the first level and, for the parts that this rank leads, over
/// the levels above; then shares the results, which all members have in the output, at the chunks
/// of `range`. Groups may be uneven: one takes as many parts at a time as it has members, in order,
/// so nobody has more than one in hand. Everyone who leads a part has done with all parts before
/// it, so nobody waits in a circle.
inline void sum_over(Builder& b, Rank me, std::span<const Level> levels, Slice range,
                     std::vector<std::uint32_t> path = {}) {
  if (levels.empty()) return;
  const PeerList members = levels[0].members(path);
  const std::uint32_t parts = levels[0].parts, count = range.count / parts;
  const auto width = static_cast<std::uint32_t>(members.size());
  for (std::uint32_t first = 0; first < parts; first += width) {
    const PeerList leaders(members.begin(), members.begin() + std::min(width, parts - first));
    const auto at = [&](Space space, std::uint32_t part, std::uint32_t stride = 0) {
      return Slice{space, range.first + part * count, count, stride};
    };
    b.send(leaders, at(range.space, first, count));
    const auto place = std::find(leaders.begin(), leaders.end(), me) - leaders.begin();
    if (place < std::ssize(leaders)) {
      path.push_back(first + static_cast<std::uint32_t>(place));
      const Slice sum = at(Space::output, path.back());
      b.recv_reduce(members, at(range.space, path.back()), sum);
      sum_over(b, me, levels.subspan(1), sum, path);
      path.pop_back();
      b.send(members, sum);
    }
    b.recv(leaders, at(Space::output, first, count), at(Space::output, first, count));
  }
}

}  // namespace anyccl
