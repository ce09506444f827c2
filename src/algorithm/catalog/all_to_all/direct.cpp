// Direct: everyone publishes its whole row and reads its column. Thakur, Rabenseifner and Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005. Least
// traffic and one round. In place, peers read a copy.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1 ? 1U : 0U, n - 1, n, 0};
}

Schedule build(const Shape& s, Rank me) {
  const auto n = static_cast<std::uint32_t>(s.size);
  Builder b(s, me, 1);
  Slice row{Space::input, 0, 1, 1};
  if (s.in_place && n > 1) {
    row = b.scratch(uindex(me) * n, n);
    b.copy({Space::input, 0, n}, row);
    row = {row.space, row.first, 1, 1};
  }
  b.send(b.everyone(), row);
  b.recv(b.everyone(), {Space::output, 0, 1, 1}, {Space::input, uindex(me)});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_to_all_direct = {"direct", Collective::all_to_all, any_shape, cost,
                                            build};

}  // namespace anyccl
