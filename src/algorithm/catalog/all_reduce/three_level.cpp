// Three level: reduce-scatter inside a group of ranks, then between the groups of a host, then
// between hosts; all-gather the way back. Karonis et al., "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000, with the leaders of
// two_level at each level. A rank talks to few others at a time, so it suits hosts with many ranks.
// A group is a run of about four of a host's ranks, or of those that share a cache or a memory
// node, if the shape has those instead of hosts.

#include "algorithm/catalog/levels.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kGroup = 4;  // at most, and no group of a host has two less than another

/// Makes runs of at most kGroup ranks, whose sizes differ by one at most.
std::vector<PeerList> groups_of(const PeerList& host) {
  const std::size_t count = (host.size() + kGroup - 1) / kGroup;
  std::vector<PeerList> groups(count);
  for (std::size_t i = 0; i < host.size(); ++i) groups[i * count / host.size()].push_back(host[i]);
  return groups;
}

Schedule build(const Shape& s, Rank me) {
  const std::vector<PeerList> hosts = ranks_by_host(s);
  std::vector<std::vector<PeerList>> groups;  // of each host
  std::uint32_t group_size = 0, group_count = 0;
  for (const PeerList& host : hosts) {
    groups.push_back(groups_of(host));
    group_size = std::max(group_size, largest(groups.back()));
    group_count = std::max(group_count, static_cast<std::uint32_t>(groups.back().size()));
  }
  const auto host_count = static_cast<std::uint32_t>(hosts.size());
  const std::vector<PeerList> home = groups_of(list_with(hosts, me));
  const Level levels[] = {{group_size, [&](auto) { return list_with(home, me); }},
                          {group_count,
                           [&](auto path) {
                             PeerList leaders;  // of my slice in each group of my host
                             for (const PeerList& group : home)
                               leaders.push_back(leader(group, path[0]));
                             return leaders;
                           }},
                          {host_count, [&](auto path) {
                             PeerList leaders;  // of my slice of my slice in each host
                             for (const auto& host : groups)
                               leaders.push_back(leader(host[path[1] % host.size()], path[0]));
                             return leaders;
                           }}};
  const std::uint32_t parts = group_size * group_count * host_count;
  Builder b(s, me, parts);
  sum_over(b, me, levels, {Space::input, 0, parts});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_three_level = {"three_level", Collective::all_reduce, any_shape,
                                                 nullptr, build};

}  // namespace anyccl
