// Binomial: each rank that has the message sends it to the next half, quarter, eighth of the ranks.
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 19(1), 2005. Fewest steps for one small message between hosts; the root sends log2 n
// times.

#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

/// Counts the ceil(log2 n) reads of the message at the root, which is the busiest rank.
Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {std::bit_width(n) - 1U, ceil_log2(s.size), 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, root = index(s.root);
  const Node node = binomial_tree(index(wrap(index(me) - root, n)), n);
  Builder b(s, me, 1);
  b.recv(ranks_at(node.parent, root, n), {Space::output});
  b.send(ranks_at(node.children, root, n), {me == s.root ? Space::input : Space::output});
  if (me == s.root) b.copy({Space::input}, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm broadcast_binomial = {"binomial", Collective::broadcast, any_shape, cost,
                                             build};

}  // namespace anyccl
