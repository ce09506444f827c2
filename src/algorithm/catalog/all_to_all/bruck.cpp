// Bruck: a block that has j ranks to go travels the powers of two in j, so all blocks with that bit
// go together; log2 n rounds for any n. Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient
// algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS 8(11),
// 1997. Fewest rounds, but every block travels up to log2 n times; suits small blocks over a
// network.

#include "algorithm/catalog/bruck.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  return bruck_cost(s.size, 2);
}
Schedule build(const Shape& s, Rank me) {
  return bruck_all_to_all(s, me, 2);
}

}  // namespace

extern const Algorithm all_to_all_bruck = {"bruck", Collective::all_to_all, any_shape, cost, build};

}  // namespace anyccl
