// Binomial tree: everyone adds up what its children have and passes it on. The tree is the aligned
// one for every root, which takes the place of the first rank in the nodes that it is in. The
// mirror of a binomial broadcast: Thakur, Rabenseifner and Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19(1), 2005. log2 n rounds, and nobody serves all;
// suits networks.

#include "algorithm/catalog/aligned_tree.hpp"

namespace anyccl {
namespace {

/// The longest way to the holder of this node.
std::uint32_t rounds(RankRange node, int root) {
  if (node.end - node.first == 1) return 0;
  const auto half = std::bit_floor(static_cast<unsigned>(node.end - node.first - 1));
  const int middle = node.first + static_cast<int>(half);
  const auto of = [&](RankRange part) {
    return rounds(part, root) + (holder(part, root) == holder(node, root) ? 0U : 1U);
  };
  return std::max(of({node.first, middle}), of({middle, node.end}));
}

Cost cost(const Shape& s) {
  return {rounds({0, s.size}, index(s.root)), s.size > 1 ? 1U : 0U, 1, ceil_log2(s.size)};
}

Schedule build(const Shape& s, Rank me) {
  const Node node = aligned_tree(index(me), index(s.root), s.size);
  const bool leaf = node.children.empty();
  Builder b(s, me, 1);
  if (s.size == 1) b.copy({Space::input}, {Space::output});
  Slice sum{Space::input};
  if (!leaf) sum = me == s.root ? Slice{Space::output} : b.scratch(0);
  add_up(b, me, node.children, {Space::input}, sum);
  b.send(ranks_at(node.parent, 0, s.size), sum);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_binomial = {"binomial", Collective::reduce, any_shape, cost, build,
                                          the_tree};

}  // namespace anyccl
