// Double binary tree: each half of the message goes down a binary tree of its own, and who passes
// on one half is a leaf for the other. Sanders, Speck and Traeff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009. About log2 n rounds
// and no rank sends more than the message once, so it suits large messages on many ranks.

#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto others = static_cast<std::uint32_t>(s.size - 1);
  if (others == 0) return {.of = 2};
  return {static_cast<std::uint32_t>(std::bit_width(others)) + 1U, 2, 2, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, root = index(s.root), v = index(wrap(index(me) - root, n));
  const Space from = v == 0 ? Space::input : Space::output;
  Builder b(s, me, 2);
  for (const bool passes_on : {true, false})  // what others wait for comes first
    for (int tree = 0; tree < 2 && n > 1; ++tree) {
      const auto half = static_cast<std::uint32_t>(tree);
      const Node node = two_trees(tree, v, n - 1);
      if (node.children.empty() == passes_on) continue;
      b.recv(ranks_at(node.parent, root, n), {Space::output, half});
      b.send(ranks_at(node.children, root, n), {from, half});
    }
  if (v == 0) b.copy({Space::input, 0, 2}, {Space::output, 0, 2});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm broadcast_double_binary_tree = {"double_binary_tree", Collective::broadcast,
                                                       any_shape, cost, build};

}  // namespace anyccl
