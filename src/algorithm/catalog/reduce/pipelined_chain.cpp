// Pipelined chain: each rank adds its vector to the sum from behind and passes it on, tile by tile,
// so the tiles of a large message keep all ranks busy. The mirror of a pipelined chain broadcast:
// Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing
// 10(2), 2007. Each rank sends and receives once; n-1 rounds, so it suits large messages.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n - 1, n > 1 ? 1U : 0U, 1, n - 1};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const bool last = wrap(r + 1, n) == s.root;  // nobody is behind it
  Builder b(s, me, 1);
  Slice sum{Space::input};
  if (!last) {
    sum = me == s.root ? Slice{Space::output} : b.scratch(0);
    b.recv_reduce(wrap(r + 1, n), {Space::input}, sum);
  }
  if (n == 1) b.copy({Space::input}, {Space::output});
  if (me != s.root) b.send(wrap(r - 1, n), sum);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_pipelined_chain = {"pipelined_chain", Collective::reduce, any_shape,
                                                 cost, build};

}  // namespace anyccl
