// Flat: everyone reads its block where the root published it. Least traffic and one round.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1 ? 1U : 0U, n - 1, n, 0};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, 1);
  if (me == s.root)
    b.send(b.everyone(), {Space::input, 0, 1, 1}).copy({Space::input, uindex(me)}, {Space::output});
  else
    b.recv(s.root, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm scatter_flat = {"flat", Collective::scatter, any_shape, cost,
                                       build,  by_position,         kVForm};

}  // namespace anyccl
