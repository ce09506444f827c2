// Pairwise exchange: in round k everyone sends to the rank k further on and receives from the one k
// before, so that no rank is asked by two at once. Thakur, Rabenseifner and Gropp, "Optimization of
// collective communication operations in MPICH", IJHPCA 19(1), 2005. Least traffic in n-1 messages
// that follow each other; suits large messages over a network. In place, peers read a copy.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n - 1, n - 1, n, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const auto blocks = static_cast<std::uint32_t>(n);
  Builder b(s, me, 1);
  Slice row{Space::input, 0, blocks};
  if (s.in_place && n > 1) {
    row = b.scratch(uindex(me) * blocks, blocks);
    b.copy({Space::input, 0, blocks}, row);
  }
  b.copy({Space::input, uindex(me)}, {Space::output, uindex(me)});
  for (int k = 1; k < n; ++k) {
    const Rank to = wrap(r + k, n), from = wrap(r - k, n);
    b.send(to, {row.space, row.first + uindex(to)});
    b.recv(from, {Space::output, uindex(from)});
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_to_all_pairwise = {"pairwise", Collective::all_to_all, any_shape, cost,
                                              build};

}  // namespace anyccl
