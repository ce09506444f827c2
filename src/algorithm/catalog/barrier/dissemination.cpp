// Dissemination: in round k, everyone signals the rank 2^k after it and waits for the one 2^k
// before it. Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", IJPP 17(1),
// 1988. Fewest rounds for any n where a rank talks to one other in each.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  return {ceil_log2(s.size), ceil_log2(s.size), 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  Builder b(s, me, 1);
  Slice have{Space::input};  // the signal of everyone heard of so far
  for (int hop = 1; hop < n; hop *= 2) {
    const Slice heard = b.scratch(0);
    b.send(wrap(r + hop, n), have);
    b.recv_reduce(wrap(r - hop, n), have, heard);
    have = heard;
  }
  b.copy(have, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm barrier_dissemination = {"dissemination", Collective::barrier, any_shape,
                                                cost, build};

}  // namespace anyccl
