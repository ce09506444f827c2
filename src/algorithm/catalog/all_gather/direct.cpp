// Direct: everyone reads every block where its owner published it. Least traffic and one round;
// every rank talks to all others, so it suits shared memory and few ranks.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1 ? 1U : 0U, n - 1, 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, 1);
  b.send(b.everyone(), {Space::input});
  b.recv(b.everyone(), {Space::output, 0, 1, 1}, {Space::input});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_gather_direct = {
    "direct", Collective::all_gather, any_shape, cost, build, by_position, kVForm};

}  // namespace anyccl
