// Reduce-scatter and gather: everyone sums its own chunk of all inputs by the aligned tree, then
// the root collects the sums. Rabenseifner, "A new optimized MPI reduce algorithm", 1997, with
// direct access to every peer. All ranks share the work; two rounds and one rounding, for large
// messages.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1 ? 2U : 0U, n > 1 ? n : 0U, n, n > 1 ? 1U : 0U};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, static_cast<std::uint32_t>(s.size));
  const bool at_root = me == s.root;
  const Slice sum = at_root ? Slice{Space::output, uindex(me)} : b.scratch(uindex(me));
  b.send(b.everyone(), {Space::input, 0, 1, 1});
  b.recv_reduce(b.everyone(), {Space::input, uindex(me)}, sum);
  if (at_root)
    b.recv(b.everyone(), {Space::output, 0, 1, 1}, {Space::output, 0, 1, 1});
  else
    b.send(s.root, sum);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_reduce_scatter_gather = {
    "reduce_scatter_gather", Collective::reduce, any_shape, cost, build, the_tree_in_one_step};

}  // namespace anyccl
