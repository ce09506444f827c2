// Two level: reduce inside each host to one leader per slice, two-shot between the leaders of a
// slice, then share inside the host. Bayatpour et al., "Scalable reduction collectives with data
// partitioning-based multi-leader design" (DPML), SC 2017. Every rank drives the network; crosses
// it with 2 (H-1)/H of the vector per host. Hosts may be uneven and their ranks scattered: there
// are as many slices as the largest host has ranks, and small hosts lead several.

#include "algorithm/catalog/aligned_tree.hpp"

namespace anyccl {
namespace {

Schedule build(const Shape& s, Rank me) {
  const std::vector<PeerList> hosts = ranks_by_host(s);
  const auto slices = largest(hosts), pieces = static_cast<std::uint32_t>(hosts.size());
  const Level levels[] = {{slices, [&](auto) { return list_with(hosts, me); }},
                          {pieces, [&](auto path) {
                             PeerList leaders;  // of my slice in each host
                             for (const PeerList& host : hosts)
                               leaders.push_back(leader(host, path[0]));
                             return leaders;
                           }}};
  Builder b(s, me, slices * pieces);
  sum_over(b, me, levels, {Space::input, 0, slices * pieces});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_two_level = {
    "two_level", Collective::all_reduce, any_shape, nullptr, build, tree_of_aligned_hosts};

}  // namespace anyccl
