// Binomial tree: everyone adds up what its children have and passes it on. The mirror of a binomial
// broadcast: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
// in MPICH", IJHPCA 19(1), 2005. log2 n rounds, and nobody serves all; suits networks.

#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto height = static_cast<std::uint32_t>(std::bit_width(uindex(Rank{s.size}))) - 1;
  return {height, s.size > 1 ? 1U : 0U, 1, height};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, root = index(s.root);
  const Node node = binomial_tree(index(wrap(index(me) - root, n)), n);
  const PeerList children = ranks_at(node.children, root, n);
  Builder b(s, me, 1);
  PeerList family{me};
  family.insert(family.end(), children.begin(), children.end());
  Slice sum{Space::input};
  if (me == s.root || !children.empty()) {
    sum = me == s.root ? Slice{Space::output} : b.scratch(0);
    b.recv_reduce(family, {Space::input}, sum);
  }
  b.send(ranks_at(node.parent, root, n), sum);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_binomial = {"binomial", Collective::reduce, any_shape, cost, build};

}  // namespace anyccl
