// Pipelined chain: everyone adds its vector to what the rank before it has and passes it on, tile
// by tile, so the tiles of a large message keep all ranks busy. Sanders and Traeff, "Parallel
// prefix (scan) algorithms for MPI", EuroPVM/MPI 2006. Everyone sends and receives once; n-1
// rounds, so it suits large messages.

#include "algorithm/catalog/prefix.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n - 1, n > 1, 1, n - 1};
}

Schedule build(const Shape& s, Rank me) {
  const int r = index(me);
  Builder b(s, me, 1);
  if (r == 0)
    b.copy({Space::input}, {Space::output});
  else
    b.recv_reduce(PeerList{Rank{r - 1}, me}, {Space::input}, {Space::output});
  if (r + 1 < s.size) b.send(Rank{r + 1}, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm scan_pipelined_chain = {"pipelined_chain", Collective::scan, any_shape, cost,
                                               build};

}  // namespace anyccl
