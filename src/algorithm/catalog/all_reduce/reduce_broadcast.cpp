// Reduce and broadcast: up the aligned tree, which is a binomial one, to rank 0, and down again.
// The two-phase all-reduce of Thakur, Rabenseifner and Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19(1), 2005. Fewest messages, 2 (n-1) in all; most
// ranks are idle most of the time, so it suits small messages where a message is what costs.

#include "algorithm/catalog/aligned_tree.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  const auto height = static_cast<std::uint32_t>(std::bit_width(n)) - 1;
  return {2 * height, ceil_log2(s.size), 1, ceil_log2(s.size)};
}

Schedule build(const Shape& s, Rank me) {
  const Node node = aligned_tree(index(me), 0, s.size);
  const PeerList parent = ranks_at(node.parent, 0, s.size);
  PeerList children = ranks_at(node.children, 0, s.size);
  std::reverse(children.begin(), children.end());  // the child that has most to pass on hears first
  const Slice in{Space::input}, out{Space::output};
  Builder b(s, me, 1);
  if (s.size == 1) b.copy(in, out);
  add_up(b, me, node.children, in, out);
  b.send(parent, children.empty() ? in : out);
  b.recv(parent, out);
  b.send(children, out);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_reduce_broadcast = {
    "reduce_broadcast", Collective::all_reduce, any_shape, cost, build, the_tree};

}  // namespace anyccl
