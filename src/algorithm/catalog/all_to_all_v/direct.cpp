// Direct: everyone reads each block where its sender published it, a few peers at a time, starting
// with its neighbour so that no rank serves all others at once. Thakur, Rabenseifner and Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005, with a
// window. Least traffic, and the only way when nobody else knows how much a pair exchanges. In
// place, peers read a copy.

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

constexpr int kWindow = 4;  // publications that a rank has outstanding at most

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {(n + kWindow - 2) / kWindow, n - 1, n, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const auto blocks = static_cast<std::uint32_t>(n);
  Builder b(s, me, 1);
  Slice row{Space::input, uindex(wrap(r + 1, n)), 1, 1};  // from the neighbour's block on
  if (s.in_place) {
    for (int k = 1; k < n; ++k) b.scratch(uindex(me) * blocks + uindex(wrap(r + k, n)));
    b.copy({Space::input, row.first, blocks - 1}, {Space::scratch, 0, blocks - 1});
    row = {Space::scratch, 0, 1, 1};
  }
  for (int i = 1; i < n; i += kWindow) {
    PeerList to, from;
    for (int k = i; k < std::min(i + kWindow, n); ++k) {
      to.push_back(wrap(r + k, n));
      from.push_back(wrap(r - k, n));
    }
    b.send(to, {row.space, row.first + static_cast<std::uint32_t>(i - 1), 1, 1});
    b.recv(from, {Space::output, uindex(from[0]), 1, blocks - 1});  // circular: downwards
  }
  b.copy({Space::input, uindex(me)}, {Space::output, uindex(me)});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_to_all_v_direct = {"direct", Collective::all_to_all_v, any_shape, cost,
                                              build};

}  // namespace anyccl
