// Binomial tree: everyone passes on the blocks of all that are below it, which lie one after the
// other because positions count from the root. Thakur, Rabenseifner and Gropp, "Optimization of
// collective communication operations in MPICH", IJHPCA 19(1), 2005. log2 n rounds, for blocks that
// travel up to log2 n times; suits small blocks over a network.

#include <algorithm>

#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

/// Counts what the busiest child of the root sends, as the root itself sends nothing.
Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size), half = std::bit_ceil(n) / 2;
  return {static_cast<std::uint32_t>(std::bit_width(n)) - 1,
          std::max(std::min(half, n - half), half / 2), 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, root = index(s.root), v = index(wrap(index(me) - root, n));
  const Node node = binomial_tree(v, n);
  const auto below = [&](int u) { return static_cast<std::uint32_t>(blocks_below(u, n)); };
  Builder b(s, me, 1);
  Slice all{Space::input};
  if (me == s.root || !node.children.empty()) {
    all =
        me == s.root ? Slice{Space::output, uindex(me), below(v)} : b.scratch(uindex(me), below(v));
    b.copy({Space::input}, {all.space, all.first});
    for (const int child : node.children)
      b.recv(wrap(child + root, n),
             {all.space, all.first + static_cast<std::uint32_t>(child - v), below(child)});
  }
  b.send(ranks_at(node.parent, root, n), all);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm gather_binomial = {"binomial", Collective::gather, any_shape, cost, build};

}  // namespace anyccl
