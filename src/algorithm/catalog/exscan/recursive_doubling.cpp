// Recursive doubling: everyone gets the vector of the rank before it; a scan of those is the
// result. In round k of it everyone adds what the rank 2^k before it has. Hillis and Steele, "Data
// parallel algorithms", CACM 29(12), 1986. Sends the whole vector in each of about log2 n rounds,
// so it suits small messages on many ranks.

#include "algorithm/catalog/prefix.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  if (s.size == 1) return {};
  const std::uint32_t rounds = ceil_log2(s.size - 1);
  return {rounds + 1, s.size > 2 ? rounds + 1 : 1, 1, rounds};
}

Schedule build(const Shape& s, Rank me) {
  const int r = index(me);
  Builder b(s, me, 1);
  if (r + 1 < s.size) b.send(Rank{r + 1}, {Space::input});
  if (r > 0) {
    const Slice before = b.scratch(0);
    b.recv(Rank{r - 1}, before);
    scan_by_doubling(b, 1, r, s.size, before, {Space::output});
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm exscan_recursive_doubling = {"recursive_doubling", Collective::exscan,
                                                    any_shape, cost, build};

}  // namespace anyccl
