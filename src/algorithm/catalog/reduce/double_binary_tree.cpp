// Double binary tree: each half of the vector goes up a binary tree of its own, and who adds up one
// half is a leaf for the other. The mirror of a double-tree broadcast: Sanders, Speck and Traeff,
// "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
// 35(12), 2009. About log2 n rounds and no rank sends more than the vector once, so it suits large
// messages on many ranks.

#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  if (n == 1) return {.of = 2};
  // With 2^k ranks, one is a leaf of full height twice and sends one half after the other.
  return {static_cast<std::uint32_t>(std::bit_width(n)), 2, 2,
          static_cast<std::uint32_t>(std::bit_width(n - 1))};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, root = index(s.root), v = index(wrap(index(me) - root, n));
  Builder b(s, me, 2);
  if (n == 1) b.copy({Space::input, 0, 2}, {Space::output, 0, 2});
  for (const bool adds_up : {false, true})  // what others wait for and needs nothing comes first
    for (std::uint32_t half = 0; half < 2 && n > 1; ++half) {
      const Node node = two_trees(static_cast<int>(half), v, n - 1);
      if (node.children.empty() == adds_up) continue;
      Slice sum{Space::input, half};
      if (adds_up) {
        PeerList family = ranks_at(node.children, root, n);
        family.insert(family.begin(), me);
        sum = v == 0 ? Slice{Space::output, half} : b.scratch(half);
        b.recv_reduce(family, {Space::input, half}, sum);
      }
      b.send(ranks_at(node.parent, root, n), sum);
    }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_double_binary_tree = {"double_binary_tree", Collective::reduce,
                                                    any_shape, cost, build};

}  // namespace anyccl
