// Ring: a reduce-scatter ring, then an all-gather ring. Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009. Least traffic, and only
// between neighbours; 2 (n-1) rounds, so it suits large messages.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {2 * (n - 1), 2 * (n - 1), n, n - 1};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const Rank next = wrap(r + 1, n), prev = wrap(r - 1, n);
  const auto chunk = [&](Space space, int i) { return Slice{space, uindex(wrap(i, n))}; };
  Builder b(s, me, static_cast<std::uint32_t>(n));
  if (n == 1) b.copy({Space::input}, {Space::output});
  for (int k = 0; k < n - 1; ++k) {  // then rank r owns the sum of chunk r + 1
    b.send(next, chunk(k == 0 ? Space::input : Space::output, r - k));
    b.recv_reduce(prev, chunk(Space::input, r - k - 1), chunk(Space::output, r - k - 1));
  }
  for (int k = 0; k < n - 1; ++k) {
    b.send(next, chunk(Space::output, r + 1 - k));
    b.recv(prev, chunk(Space::output, r - k));
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_ring = {"ring", Collective::all_reduce, any_shape, cost, build};

}  // namespace anyccl
