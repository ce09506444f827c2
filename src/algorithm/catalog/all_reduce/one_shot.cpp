// One shot: everyone publishes its whole input and sums everyone's by the aligned tree. The
// small-message path of MSCCL++ and NCCL's symmetric kernels (LL all-gather, then reduce). One
// round and one rounding; reads n vectors, so it suits small messages inside a host.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1, n - 1, 1, n > 1};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, 1);
  Slice mine{Space::input};
  if (s.in_place) {  // peers read it to the end
    mine = b.scratch(0);
    b.copy({Space::input}, mine);
  }
  b.send(b.everyone(), mine);
  b.recv_reduce(b.everyone(), mine, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_one_shot = {"one_shot", Collective::all_reduce, any_shape, cost,
                                              build,      the_tree_in_one_step};

}  // namespace anyccl
