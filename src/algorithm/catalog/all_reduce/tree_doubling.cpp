// Tree doubling: recursive doubling along the aligned tree. In round k everyone reads the sum of
// the node beside its node of 2^k ranks from one of that node's ranks. Recursive doubling as in
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 19(1), 2005, with the tree's order for any number of ranks, and no rounds more if that is
// no power of two; a node that is small then serves more readers. For small messages between hosts.

#include "algorithm/catalog/aligned_tree.hpp"

namespace anyccl {
namespace {

/// Whom rank r reads in the round of this size; none where its node has no sibling.
PeerList peers_read_by(int r, int size, int n) {
  const RankRange node = node_with(r, size, n), sibling = node_with(r ^ size, size, n);
  if (sibling.first >= n) return {};
  return {Rank{sibling.first + (r - node.first) % (sibling.end - sibling.first)}};
}

/// And who reads r.
PeerList readers_of(int r, int size, int n) {
  const RankRange sibling = node_with(r ^ size, size, n);
  PeerList readers;
  for (int other = sibling.first; other < sibling.end; ++other)
    if (peers_read_by(other, size, n) == PeerList{Rank{r}}) readers.push_back(Rank{other});
  return readers;
}

Cost cost(const Shape& s) {
  std::uint32_t busiest = 0;
  for (int r = 0; r < s.size; ++r) {
    std::size_t sent = 0;
    for (int size = 1; size < s.size; size *= 2) sent += readers_of(r, size, s.size).size();
    busiest = std::max(busiest, static_cast<std::uint32_t>(sent));
  }
  return {ceil_log2(s.size), busiest, 1, ceil_log2(s.size)};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  Builder b(s, me, 1);
  if (n == 1) b.copy({Space::input}, {Space::output});
  // What peers read stays as it is until they have: the next sum goes elsewhere.
  Slice have{Space::input}, room[2];
  std::uint32_t round = 0;
  for (int size = 1; size < n; size *= 2, ++round) {
    b.send(readers_of(r, size, n), have);
    const PeerList sibling = peers_read_by(r, size, n);
    if (sibling.empty()) continue;
    const bool last = 2 * size >= n && !(s.in_place && have.space == Space::input);
    Slice& free = room[round % 2];
    if (!last && free.space != Space::scratch) free = b.scratch(0);
    const Slice sum = last ? Slice{Space::output} : free;
    b.recv_reduce(sibling[0] < me ? PeerList{sibling[0], me} : PeerList{me, sibling[0]}, have, sum);
    have = sum;
  }
  if (n > 1) b.copy(have, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_tree_doubling = {
    "tree_doubling", Collective::all_reduce, any_shape, cost, build, the_tree};

}  // namespace anyccl
