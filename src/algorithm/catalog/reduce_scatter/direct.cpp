// Direct: everyone reads its block of every rank's input where it lies and adds them up at once, by
// the aligned tree. The first half of two-shot AllReduce. Least traffic, one round and one
// rounding; every rank talks to all others, so it suits shared memory and few ranks.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1 ? 1U : 0U, n - 1, n, n > 1 ? 1U : 0U};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, 1);
  b.send(b.everyone(), {Space::input, 0, 1, 1});
  b.recv_reduce(b.everyone(), {Space::input, uindex(me)}, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_scatter_direct = {
    "direct", Collective::reduce_scatter, any_shape, cost, build, the_tree_in_one_step, kVForm};

}  // namespace anyccl
