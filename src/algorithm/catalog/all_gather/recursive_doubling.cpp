// Recursive doubling: partners at twice the distance each time swap all they have. Thakur,
// Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
// 19(1), 2005. Least traffic in log2 n rounds, for powers of two; Bruck does as well for the
// others.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {ceil_log2(s.size), n - 1, 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const auto n = static_cast<std::uint32_t>(s.size), r = uindex(me);
  Builder b(s, me, 1);
  b.copy({Space::input}, {Space::output, r});
  for (std::uint32_t have = 1; have < n; have *= 2) {
    const std::uint32_t partner = r ^ have, mask = ~(have - 1);
    b.send(Rank{static_cast<int>(partner)},
           have == 1 ? Slice{Space::input} : Slice{Space::output, r & mask, have});
    b.recv(Rank{static_cast<int>(partner)}, {Space::output, partner & mask, have});
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_gather_recursive_doubling = {
    "recursive_doubling", Collective::all_gather, power_of_two, cost, build, by_position, kVForm,
    kPowerOfTwo};

}  // namespace anyccl
