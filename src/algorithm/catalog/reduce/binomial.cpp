// Binomial tree: the mirror of a binomial broadcast. In round k the ranks whose distance from the
// root has bit k as its lowest send their sum to the rank that lies 2^k before them. Thakur,
// Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
// 19(1), 2005. log2 n rounds; suits small and medium messages over a network.

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto last = static_cast<unsigned>(s.size - 1);  // a rank's way has a hop per set bit
  const int longest = std::max(std::popcount(last), static_cast<int>(std::bit_width(last)) - 1);
  return {static_cast<std::uint32_t>(std::max(longest, 0)), s.size > 1 ? 1U : 0U, 1,
          ceil_log2(s.size)};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, v = index(wrap(index(me) - index(s.root), n));
  Builder b(s, me, 1);
  Slice sum{Space::input};
  for (int distance = 1; distance < n; distance *= 2) {
    if ((v & distance) != 0) {
      b.send(wrap(index(me) - distance, n), sum);
      return std::move(b).finish();
    }
    if (v + distance >= n) continue;
    const Slice next = me == s.root ? Slice{Space::output} : b.scratch(0);
    b.recv_reduce(wrap(index(me) + distance, n), sum, next);
    sum = next;
  }
  if (n == 1) b.copy(sum, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_binomial = {"binomial", Collective::reduce, any_shape, cost, build};

}  // namespace anyccl
