// Pipelined chain: everyone passes each tile on to the next rank as it arrives. Pjesivac-Grbovic,
// Angskun, Bosilca, Fagg, Gabriel and Dongarra, "Performance analysis of MPI collective
// operations", Cluster Computing 10(2), 2007. No rank sends the message more than once, so it suits
// large messages on few ranks; a tile takes n-1 rounds to the end. The schedule is that of one
// tile.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n - 1, n > 1, 1, 0};
}

/// Makes the schedule of one tile: each rank receives it and sends it on; the root sends its input,
/// and copies that to its output.
Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const Rank next = wrap(r + 1, n);
  const bool first = me == s.root, last = next == s.root;
  Builder b(s, me, 1);
  if (!first) b.recv(wrap(r - 1, n), {Space::output});
  if (!last) b.send(next, {first ? Space::input : Space::output});
  if (first) b.copy({Space::input}, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm broadcast_pipelined_chain = {"pipelined_chain", Collective::broadcast,
                                                    any_shape, cost, build};

}  // namespace anyccl
