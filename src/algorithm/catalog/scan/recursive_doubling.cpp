// Recursive doubling: in round k everyone adds what the rank 2^k before it has. Hillis and Steele,
// "Data parallel algorithms", CACM 29(12), 1986. Fewest rounds between two ranks at a time; sends
// the whole vector in each, so it suits small messages on many ranks.

#include "algorithm/catalog/prefix.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const std::uint32_t rounds = ceil_log2(s.size);
  return {rounds, rounds, 1, rounds};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, 1);
  scan_by_doubling(b, 0, index(me), s.size, {Space::input}, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm scan_recursive_doubling = {"recursive_doubling", Collective::scan, any_shape,
                                                  cost, build};

}  // namespace anyccl
