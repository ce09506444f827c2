// Two level: each block of another host is added up inside the own host, at one of its ranks, and
// crosses the network as one sum; its owner adds up these and the sum of its own host, in the order
// of the hosts. The way back of all_gather/two_level, with every rank as a leader: Zhu, Goodell,
// Gropp and Thakur, "Hierarchical collectives in MPICH2", EuroPVM/MPI 2009. Least traffic between
// hosts and two roundings; H+1 rounds for H even hosts, of which one crosses the network. Suits
// hosts with several ranks. Hosts may be uneven and their ranks scattered.

#include "algorithm/catalog/aligned_tree.hpp"

namespace anyccl {
namespace {

/// My blocks for these ranks side by side: where they lie, or else copied.
Slice pack_blocks(Builder& b, const PeerList& ranks) {
  const auto count = static_cast<std::uint32_t>(ranks.size());
  const std::uint32_t first = uindex(ranks.front());
  if (uindex(ranks.back()) - first + 1 == count) return {Space::input, first, count};
  Slice all{.count = 0};
  for (const Rank r : ranks) {
    const Slice room = b.scratch(uindex(r));
    b.copy({Space::input, uindex(r)}, room);
    all = {room.space, all.count == 0 ? room.first : all.first, all.count + 1};
  }
  return all;
}

/// To each of these ranks, its block.
void send_each(Builder& b, const PeerList& ranks) {
  const Slice mine = pack_blocks(b, ranks);
  b.send(ranks, {mine.space, mine.first, 1, 1});
}

/// Adds up the blocks of host `there` in this one, as many at a time as it has ranks, one at each:
/// the next one of `sums`.
void add_up(Builder& b, Rank me, const PeerList& home, const PeerList& there, Slice& sums) {
  for (std::size_t first = 0; first < there.size(); first += home.size()) {
    const auto begin = there.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = static_cast<std::ptrdiff_t>(std::min(home.size(), there.size() - first));
    const PeerList owners(begin, begin + count), leaders(home.begin(), home.begin() + count);
    const Slice mine = pack_blocks(b, owners);
    b.send(leaders, {mine.space, mine.first, 1, 1});
    for (std::ptrdiff_t i = 0; i < count; ++i)
      if (home[static_cast<std::size_t>(i)] == me) {
        b.recv_reduce(home, {Space::input, uindex(begin[i])}, sums);
        ++sums.first;
      }
  }
}

/// The sums of other hosts' blocks that this rank makes, sent when all are there: then nobody waits
/// for another host before it has sent everything.
void send_sums(Builder& b, Rank me, const std::vector<PeerList>& hosts, const PeerList& home) {
  PeerList owners;
  Slice first{.count = 0};
  for (const PeerList& host : hosts)
    for (std::uint32_t place = 0; place < host.size() && &host != &home; ++place) {
      if (leader(home, place) != me) continue;
      const Slice room = b.scratch(uindex(host[place]));
      if (owners.empty()) first = room;
      owners.push_back(host[place]);
    }
  Slice sums = first;
  for (const PeerList& host : hosts)
    if (&host != &home) add_up(b, me, home, host, sums);
  b.send(owners, {first.space, first.first, 1, 1});
}

Schedule build(const Shape& s, Rank me) {
  const std::vector<PeerList> hosts = ranks_by_host(s);
  const PeerList& home = list_with(hosts, me);
  const auto place =
      static_cast<std::uint32_t>(std::find(home.begin(), home.end(), me) - home.begin());
  Builder b(s, me, 1);
  if (home.size() > 1 && hosts.size() > 1) send_sums(b, me, hosts, home);
  send_each(b, home.size() > 1 ? home : b.everyone());
  Slice own{Space::input, uindex(me)};
  if (hosts.size() == 1 || home.size() > 1) {
    b.recv_reduce(home, own, {Space::output});
    own = {Space::output};
  }
  PeerList summands;
  for (const PeerList& host : hosts) summands.push_back(&host == &home ? me : leader(host, place));
  if (hosts.size() > 1) b.recv_reduce(summands, own, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_scatter_two_level = {
    "two_level", Collective::reduce_scatter, any_shape, nullptr,
    build,       tree_of_aligned_hosts,      kVForm};

}  // namespace anyccl
