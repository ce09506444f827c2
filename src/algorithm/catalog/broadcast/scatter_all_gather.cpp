// Scatter and all-gather: blocks of the message go down a binomial tree, then everyone gathers the
// blocks of the others in ceil(log2 n) rounds. Barnett, Gupta, Payne, Shuler, van de Geijn and
// Watts, "Interprocessor collective communication library (InterCom)", SHPCC 1994; the all-gather
// is that of Bruck et al., IEEE TPDS 8(11), 1997. No rank sends the message more than twice, in
// few rounds, so it suits medium messages on many ranks.

#include <algorithm>

#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {2 * ceil_log2(s.size), 2 * (n - 1), n, 0};
}

// How many blocks, from its own on, the scatter leaves at position v of the tree.
int scattered(int v, int n) {
  return v == 0 ? n : std::min(v & -v, n - v);
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, root = index(s.root), v = index(wrap(index(me) - root, n));
  const auto rank = [&](int position) { return wrap(position + root, n); };
  const auto blocks = [&](Space space, int first, int count) {
    return Slice{space, uindex(wrap(first, n)), static_cast<std::uint32_t>(count)};
  };
  const Space from = v == 0 ? Space::input : Space::output;
  const Node node = binomial_tree(v, n);
  Builder b(s, me, static_cast<std::uint32_t>(n));
  b.recv(ranks_at(node.parent, root, n), blocks(Space::output, v, scattered(v, n)));
  for (int child : node.children) b.send(rank(child), blocks(from, child, scattered(child, n)));
  for (int have = 1; have < n; have *= 2) {  // blocks from one's own on
    const int count = std::min(have, n - have), to = index(wrap(v - have, n));
    if (scattered(to, n) < have + count) b.send(rank(to), blocks(from, v, count));
    if (scattered(v, n) < have + count)
      b.recv(rank(v + have), blocks(Space::output, v + have, count));
  }
  if (v == 0) b.copy(blocks(Space::input, 0, n), blocks(Space::output, 0, n));
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm broadcast_scatter_all_gather = {"scatter_all_gather", Collective::broadcast,
                                                       any_shape, cost, build};

}  // namespace anyccl
