// Central: everyone tells rank 0, which tells everyone. The central counter of Mellor-Crummey and
// Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors", ACM TOCS 9(1),
// 1991. Two rounds and 2 (n-1) signals, fewest of all; rank 0 looks at everyone, so it suits few
// ranks.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1 ? 2U : 0U, n - 1, 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const Slice in{Space::input}, out{Space::output};
  Builder b(s, me, 1);
  if (me == Rank{0})
    b.recv_reduce(b.everyone(), in, out).send(b.everyone(), out);
  else
    b.send(Rank{0}, in).recv(Rank{0}, out);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm barrier_central = {"central", Collective::barrier, any_shape, cost, build};

}  // namespace anyccl
