// Ring: each block travels once around, every rank adding its own. The first half of ring
// AllReduce: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 69(2), 2009. Least traffic, and only between neighbours; n-1 rounds, so it
// suits large messages.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n - 1, n - 1, n, n - 1};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const Rank next = wrap(r + 1, n), prev = wrap(r - 1, n);
  const auto block = [&](int i) { return Slice{Space::input, uindex(wrap(i, n))}; };
  Builder b(s, me, 1);
  if (n == 1) b.copy(block(0), {Space::output});
  Slice sum = block(r - 1);  // what goes on to the next rank
  for (int k = 1; k < n; ++k) {
    const int mine = r - 1 - k;  // block r comes last and stays
    b.send(next, sum);
    sum = k == n - 1 ? Slice{Space::output} : b.scratch(uindex(wrap(mine, n)));
    b.recv_reduce(prev, block(mine), sum);
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_scatter_ring = {
    "ring", Collective::reduce_scatter, any_shape, cost, build, by_position, kVForm};

}  // namespace anyccl
