// Binomial tree: everyone gets the blocks of all that are below it and passes them on. The mirror
// of a binomial gather: Thakur, Rabenseifner and Gropp, "Optimization of collective communication
// operations in MPICH", IJHPCA 19(1), 2005. log2 n rounds, for blocks that travel up to log2 n
// times; suits small blocks over a network.

#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {ceil_log2(s.size), n - 1, n, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, root = index(s.root), v = index(wrap(index(me) - root, n));
  const Node node = binomial_tree(v, n);
  const auto below = [&](int u) { return static_cast<std::uint32_t>(blocks_below(u, n)); };
  Builder b(s, me, 1);
  Slice all{Space::output};
  if (me == s.root)
    all = {Space::input, uindex(me), below(v)};
  else if (!node.children.empty())
    all = b.scratch(uindex(me), below(v));
  b.recv(ranks_at(node.parent, root, n), all);
  for (const int child : node.children)
    b.send(wrap(child + root, n),
           {all.space, all.first + static_cast<std::uint32_t>(child - v), below(child)});
  b.copy({all.space, all.first}, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm scatter_binomial = {"binomial", Collective::scatter, any_shape, cost, build};

}  // namespace anyccl
