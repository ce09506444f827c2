// Pipelined tree: a binary tree in which everyone passes on each tile as it arrives, so the tiles
// of a large message fill all levels. Sanders, Speck and Traeff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009. About log2 n rounds
// and no rank sends more than twice; the schedule is that of one tile.

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {std::bit_width(n) - 1U, std::min(n - 1, 2U), 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, root = index(s.root), v = index(wrap(index(me) - root, n));
  Builder b(s, me, 1);
  if (v > 0) b.recv(wrap((v - 1) / 2 + root, n), {Space::output});
  PeerList children;
  for (int child = 2 * v + 1; child <= 2 * v + 2 && child < n; ++child)
    children.push_back(wrap(child + root, n));
  b.send(children, {v == 0 ? Space::input : Space::output});
  if (v == 0) b.copy({Space::input}, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm broadcast_pipelined_tree = {"pipelined_tree", Collective::broadcast,
                                                   any_shape, cost, build};

}  // namespace anyccl
