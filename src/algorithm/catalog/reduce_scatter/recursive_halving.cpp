// Recursive halving: partners at half the distance each time swap the halves of what they still
// have to reduce. Thakur, Rabenseifner and Gropp, "Optimization of collective communication
// operations in MPICH", IJHPCA 19(1), 2005. Least traffic in log2 n rounds, for powers of two;
// circulant does as well for the others.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {ceil_log2(s.size), n - 1, n, ceil_log2(s.size)};
}

Schedule build(const Shape& s, Rank me) {
  const auto n = static_cast<std::uint32_t>(s.size), r = uindex(me);
  Builder b(s, me, 1);
  if (n == 1) b.copy({Space::input}, {Space::output});
  Slice have{Space::input, 0, n};
  for (std::uint32_t half = n / 2; half > 0; half /= 2) {
    const Rank partner{static_cast<int>(r ^ half)};
    const std::uint32_t mine = r & half, theirs = half - mine;
    b.send(partner, {have.space, have.first + theirs, half});
    const Slice sum = half == 1 ? Slice{Space::output} : b.scratch(r & ~(half - 1), half);
    b.recv_reduce(partner, {have.space, have.first + mine, half}, sum);
    have = sum;
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_scatter_recursive_halving = {
    "recursive_halving", Collective::reduce_scatter, power_of_two, cost, build, by_position, kVForm,
    kPowerOfTwo};

}  // namespace anyccl
