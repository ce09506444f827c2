// Halving-doubling: partners swap the halves of what they still have and add, half as much in each
// round; then they swap back twice as much. When n is no power of two, the first ranks fold in
// pairs before and unfold after. Rabenseifner, "Optimization of collective reduction operations",
// ICCS 2004. Least traffic in 2 log2 n rounds if n is a power of two; if not, a vector and two
// rounds more, where circulant needs neither.

#include "algorithm/catalog/core.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const Core core(s.size);
  const std::uint32_t p = static_cast<std::uint32_t>(core.size);
  const std::uint32_t k = ceil_log2(core.size), fold = core.folded > 0;
  return {2 * (k + fold), 2 * (p - 1) + p * fold, p, k + fold};
}

Schedule build(const Shape& s, Rank me) {
  const Core core(s.size);
  const int r = index(me);
  const auto chunks = [](Space space, int first, int count) {
    return Slice{space, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)};
  };
  const Slice in = chunks(Space::input, 0, core.size), out = chunks(Space::output, 0, core.size);
  Builder b(s, me, out.count);
  const bool pair = r < 2 * core.folded;
  if (pair && r % 2 == 0) {  // its partner takes part for both
    b.send(Rank{r + 1}, in).recv(Rank{r + 1}, out);
    return std::move(b).finish();
  }
  if (pair) b.recv_reduce(PeerList{Rank{r - 1}, me}, in, out);
  if (s.size == 1) b.copy(in, out);
  const int i = pair ? r / 2 : r - core.folded;
  Space have = pair ? Space::output : Space::input;
  for (int bit = core.size / 2; bit > 0; bit /= 2, have = Space::output) {
    const int mine = i & -bit, theirs = mine ^ bit;  // the halves begin there
    const Rank partner = core.rank(i ^ bit);
    b.send(partner, chunks(have, theirs, bit));
    b.recv_reduce(partner, chunks(have, mine, bit), chunks(Space::output, mine, bit));
  }
  for (int bit = 1; bit < core.size; bit *= 2) {
    const int mine = i & -bit, theirs = mine ^ bit;
    const Rank partner = core.rank(i ^ bit);
    b.send(partner, chunks(Space::output, mine, bit));
    b.recv(partner, chunks(Space::output, theirs, bit));
  }
  if (pair) b.send(Rank{r - 1}, out);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_halving_doubling = {"halving_doubling", Collective::all_reduce,
                                                      any_shape, cost, build};

}  // namespace anyccl
