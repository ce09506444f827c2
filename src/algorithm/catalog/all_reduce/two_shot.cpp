// Two shot: everyone sums its own chunk of all inputs by the aligned tree, then everyone gathers
// the sums. Rabenseifner's reduce-scatter and all-gather with direct access to every peer ("A new
// optimized MPI reduce algorithm", 1997). Two rounds, one rounding, 2 (n-1)/n of the vector: the
// workhorse inside a host.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1 ? 2U : 0U, 2 * (n - 1), n, n > 1};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, static_cast<std::uint32_t>(s.size));
  const Slice mine{Space::output, uindex(me)}, each{Space::output, 0, 1, 1};
  b.send(b.everyone(), {Space::input, 0, 1, 1});
  b.recv_reduce(b.everyone(), {Space::input, uindex(me)}, mine);
  b.send(b.everyone(), mine);
  b.recv(b.everyone(), each, each);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_two_shot = {"two_shot", Collective::all_reduce, any_shape, cost,
                                              build,      the_tree_in_one_step};

}  // namespace anyccl
