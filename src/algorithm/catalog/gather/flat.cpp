// Flat: the root reads every block where its owner published it. Least traffic and one round.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const std::uint32_t any = s.size > 1 ? 1 : 0;
  return {any, any, 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, 1);
  if (me == s.root)
    b.recv(b.everyone(), {Space::output, 0, 1, 1}, {Space::input});
  else
    b.send(s.root, {Space::input});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm gather_flat = {"flat", Collective::gather, any_shape, cost,
                                      build,  by_position,        kVForm};

}  // namespace anyccl
