// Bruck with radix 4: blocks travel the digits of their way to base 4, three messages side by side
// for each digit; ceil(log4 n) dependent steps instead of ceil(log2 n), and a block travels that
// often at most. Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", IEEE TPDS 8(11), 1997. Between bruck and
// direct; suits small to medium blocks over a network.

#include "algorithm/catalog/bruck.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  return bruck_cost(s.size, 4);
}
Schedule build(const Shape& s, Rank me) {
  return bruck_all_to_all(s, me, 4);
}

}  // namespace

extern const Algorithm all_to_all_bruck_radix_4 = {"bruck_radix_4", Collective::all_to_all,
                                                   any_shape, cost, build};

}  // namespace anyccl
