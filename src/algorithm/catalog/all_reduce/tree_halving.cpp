// Tree halving: halving-doubling with neighbours as the first partners, so that it adds up by the
// aligned tree, and large pieces stay inside a host or below a switch: the farther a partner, the
// less is sent to it. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004,
// with the bits of the ranks in ascending order. Least traffic in 2 log2 n rounds, for a power of
// two.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {2 * ceil_log2(s.size), 2 * (n - 1), n, ceil_log2(s.size)};
}

Schedule build(const Shape& s, Rank me) {
  const auto r = uindex(me), n = static_cast<std::uint32_t>(s.size);
  Builder b(s, me, n);
  if (n == 1) b.copy({Space::input}, {Space::output});
  const auto partner = [&](std::uint32_t bit) { return Rank{static_cast<int>(r ^ bit)}; };
  std::uint32_t mine = 0;  // where my part begins
  Space have = Space::input;
  for (std::uint32_t bit = 1, half = n / 2; half > 0; bit *= 2, half /= 2, have = Space::output) {
    const bool upper = (r & bit) != 0;
    b.send(partner(bit), {have, upper ? mine : mine + half, half});
    if (upper) mine += half;
    b.recv_reduce(upper ? PeerList{partner(bit), me} : PeerList{me, partner(bit)},
                  {have, mine, half}, {Space::output, mine, half});
  }
  for (std::uint32_t bit = n / 2, part = 1; bit > 0; bit /= 2, part *= 2) {
    b.send(partner(bit), {Space::output, mine, part});
    b.recv(partner(bit), {Space::output, mine ^ part, part});
    mine &= ~part;
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_tree_halving = {
    "tree_halving", Collective::all_reduce, power_of_two, cost, build, the_tree, 0, kPowerOfTwo};

}  // namespace anyccl
