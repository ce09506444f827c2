// Pairwise exchange: in round k everyone sends the rank k further on its block and adds the block
// of the rank k before, so that no rank is asked by two at once. Thakur, Rabenseifner and Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005. Least
// traffic; n-1 rounds, so it suits large messages.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n - 1, n - 1, n, n - 1};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  Builder b(s, me, 1);
  Slice sum{Space::input, uindex(me)};
  if (n == 1) b.copy(sum, {Space::output});
  for (int k = 1; k < n; ++k) {
    const Slice next = k == n - 1 ? Slice{Space::output} : b.scratch(uindex(me));
    b.send(wrap(r + k, n), {Space::input, uindex(wrap(r + k, n))});
    b.recv_reduce(wrap(r - k, n), sum, next);
    sum = next;
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_scatter_pairwise = {
    "pairwise", Collective::reduce_scatter, any_shape, cost, build, by_position, kVForm};

}  // namespace anyccl
