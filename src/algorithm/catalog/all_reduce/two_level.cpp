// Two level: reduce inside each host to one leader per slice, two-shot between the leaders of a
// slice, then share inside the host. Bayatpour et al., "Scalable reduction collectives with data
// partitioning-based multi-leader design" (DPML), SC 2017. Every rank drives the network; crosses
// it with 2 (H-1)/H of the vector per host. Hosts may be uneven and their ranks scattered: there
// are as many slices as the largest host has ranks, and small hosts lead several.

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

struct Hosts {
  explicit Hosts(const Shape& s) {
    std::vector<int> ids;
    for (int r = 0; r < s.size; ++r) {
      const int id = s.host_of.empty() ? 0 : s.host_of[static_cast<std::size_t>(r)];
      const auto h = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
      if (h == ids.size()) ids.push_back(id), ranks.emplace_back();
      ranks[h].push_back(Rank{r});
      host.push_back(h);
      slices = std::max(slices, static_cast<std::uint32_t>(ranks[h].size()));
    }
  }
  Rank leader(std::size_t h, std::uint32_t slice) const {
    return ranks[h][slice % ranks[h].size()];
  }
  PeerList leaders(std::uint32_t slice) const {  // one per host
    PeerList list;
    for (std::size_t h = 0; h < ranks.size(); ++h) list.push_back(leader(h, slice));
    return list;
  }
  std::vector<PeerList> ranks;    // of each host
  std::vector<std::size_t> host;  // of each rank
  std::uint32_t slices = 0;
};

// Two granularities nest: slice i is chunks i * H .. i * H + H - 1, and host h sums chunk i * H +
// h. A host takes as many slices at a time as it has ranks, so nobody has more than one in hand.
Schedule build(const Shape& s, Rank me) {
  const Hosts hosts(s);
  const std::size_t home = hosts.host[uindex(me)];
  const PeerList& local = hosts.ranks[home];
  const auto locals = static_cast<std::uint32_t>(local.size());
  const auto pieces = static_cast<std::uint32_t>(hosts.ranks.size());
  const auto slice = [&](Space space, std::uint32_t i, std::uint32_t stride = 0) {
    return Slice{space, i * pieces, pieces, stride};
  };
  Builder b(s, me, hosts.slices * pieces);
  for (std::uint32_t i = 0; i < hosts.slices; i += locals) {
    const PeerList leaders(local.begin(), local.begin() + std::min(locals, hosts.slices - i));
    b.send(leaders, slice(Space::input, i, pieces));
    const auto place = std::find(leaders.begin(), leaders.end(), me) - leaders.begin();
    if (place < std::ssize(leaders)) {
      const std::uint32_t mine = i + static_cast<std::uint32_t>(place);
      const Slice each{Space::output, mine * pieces, 1, 1};
      const Slice own{Space::output, mine * pieces + static_cast<std::uint32_t>(home)};
      const PeerList across = hosts.leaders(mine);
      b.recv_reduce(local, slice(Space::input, mine), slice(Space::output, mine));
      if (pieces > 1) {
        b.send(across, each);
        b.recv_reduce(across, own, own);
        b.send(across, own);
        b.recv(across, each, each);
      }
      b.send(local, slice(Space::output, mine));
    }
    b.recv(leaders, slice(Space::output, i, pieces), slice(Space::output, i, pieces));
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_two_level = {"two_level", Collective::all_reduce, any_shape,
                                               nullptr, build};

}  // namespace anyccl
