// Ring: every rank passes on the block that it got last. The second half of ring AllReduce:
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
// 69(2), 2009. Least traffic, and only between neighbours; n-1 rounds, so it suits large messages.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n - 1, n - 1, 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const auto block = [&](int i) { return Slice{Space::output, uindex(wrap(i, n))}; };
  Builder b(s, me, 1);
  b.copy({Space::input}, block(r));
  for (int k = 0; k < n - 1; ++k) {
    b.send(wrap(r + 1, n), k == 0 ? Slice{Space::input} : block(r - k));
    b.recv(wrap(r - 1, n), block(r - 1 - k));
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_gather_ring = {
    "ring", Collective::all_gather, any_shape, cost, build, by_position, kVForm};

}  // namespace anyccl
