// Double binary tree: each half of the vector goes up a binary tree of its own and down again, and
// who adds up one half is a leaf for the other. Sanders, Speck and Traeff, "Two-tree algorithms for
// full bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009. 2 log2 n rounds
// and no rank sends more than the vector twice: between the ring and recursive doubling, for large
// messages on many ranks.

#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  const auto height = static_cast<std::uint32_t>(std::bit_width(n)) - 1;
  // With 2^k - 1 ranks, one is a leaf of full height twice and sends one half after the other.
  const bool twice = n > 1 && std::has_single_bit(n + 1);
  return {2 * height + twice, n == 1 ? 0 : std::min(n, 4U), 2, height};
}

struct Half {
  Half(int tree, int r, int n) : chunk(static_cast<std::uint32_t>(tree)) {
    Node node = two_trees(tree, r + 1, n);  // positions count from 1
    if (node.parent[0] == 0) node.parent.clear();
    parent = ranks_at(node.parent, -1, n);
    children = ranks_at(node.children, -1, n);
  }
  bool leaf() const { return children.empty(); }
  /// Returns this rank and its children, without its parent: in rank order, but for the edge of the
  /// second tree. It must have children.
  PeerList family(Rank me) const {
    PeerList family = children;
    family.insert(family.begin() + 1, me);
    return family;
  }
  std::uint32_t chunk;
  PeerList parent, children;
};

Schedule build(const Shape& s, Rank me) {
  const Half halves[] = {{0, index(me), s.size}, {1, index(me), s.size}};
  const auto in = [](const Half& h) { return Slice{Space::input, h.chunk}; };
  const auto out = [](const Half& h) { return Slice{Space::output, h.chunk}; };
  Builder b(s, me, 2);
  if (s.size == 1) b.copy({Space::input, 0, 2}, {Space::output, 0, 2});
  for (const Half& h : halves)
    if (h.leaf()) b.send(h.parent, in(h));
  for (const Half& h : halves) {
    if (h.leaf()) continue;
    b.recv_reduce(h.family(me), in(h), out(h));
    b.send(h.parent, out(h));
    b.recv(h.parent, out(h));
    b.send(h.children, out(h));
  }
  for (const Half& h : halves)
    if (h.leaf()) b.recv(h.parent, out(h));
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_double_binary_tree = {
    "double_binary_tree", Collective::all_reduce, any_shape, cost, build};

}  // namespace anyccl
