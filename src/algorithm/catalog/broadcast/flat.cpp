// Flat: the root publishes once and everyone reads it there. The one-writer broadcast of MPICH's
// release_gather ("Framework for scalable intra-node collective operations", SC 2018). One round;
// the root serves n-1 readers, so it suits shared memory and few ranks.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

/// Counts each of the n - 1 reads of the one publication as sent.
Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1, n - 1, 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, 1);
  if (me == s.root)
    b.send(b.everyone(), {Space::input}).copy({Space::input}, {Space::output});
  else
    b.recv(s.root, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm broadcast_flat = {"flat", Collective::broadcast, any_shape, cost, build};

}  // namespace anyccl
