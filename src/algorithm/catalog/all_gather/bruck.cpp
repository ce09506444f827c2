// Bruck: in each round a rank reads all that a rank further on has got so far, so what it has
// doubles; ceil(log2 n) rounds for any n. Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient
// algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS 8(11),
// 1997. The output is circular, so nothing has to be turned round at the end. Suits small messages.

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {ceil_log2(s.size), n - 1, 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  Builder b(s, me, 1);
  b.copy({Space::input}, {Space::output, uindex(me)});
  for (int have = 1; have < n; have *= 2) {
    const auto count = static_cast<std::uint32_t>(std::min(have, n - have));
    b.send(wrap(r - have, n),
           have == 1 ? Slice{Space::input} : Slice{Space::output, uindex(me), count});
    b.recv(wrap(r + have, n), {Space::output, uindex(wrap(r + have, n)), count});
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_gather_bruck = {
    "bruck", Collective::all_gather, any_shape, cost, build, by_position, kVForm};

}  // namespace anyccl
