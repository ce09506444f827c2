// Pipelined chain: everyone gets its result from the rank before it and passes on that plus its own
// vector, tile by tile, so the tiles of a large message keep all ranks busy. Sanders and Traeff,
// "Parallel prefix (scan) algorithms for MPI", EuroPVM/MPI 2006. Everyone sends and receives once;
// n-1 rounds, so it suits large messages.

#include "algorithm/catalog/prefix.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n - 1, n > 1, 1, n > 2 ? n - 2 : 0};
}

Schedule build(const Shape& s, Rank me) {
  const int r = index(me);
  const bool last = r + 1 == s.size;
  Builder b(s, me, 1);
  if (r == 0) {
    if (!last) b.send(Rank{1}, {Space::input});
    return std::move(b).finish();
  }
  // In place, the result must wait until the input has been added.
  const Slice before = s.in_place && !last ? b.scratch(0) : Slice{Space::output};
  b.recv(Rank{r - 1}, before);
  if (!last) {
    const Slice sum = b.scratch(0);
    b.copy(before, sum).reduce({Space::input}, sum);
    b.send(Rank{r + 1}, sum);
  }
  b.copy(before, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm exscan_pipelined_chain = {"pipelined_chain", Collective::exscan, any_shape,
                                                 cost, build};

}  // namespace anyccl
