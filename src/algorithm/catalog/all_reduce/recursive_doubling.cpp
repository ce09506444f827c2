// Recursive doubling: in round k, ranks that differ in bit k swap what they have and add. When n is
// no power of two, the first ranks fold in pairs before and unfold after. Thakur, Rabenseifner and
// Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005. Fewest
// rounds; sends the whole payload in each, so it suits small messages between hosts.

#include "algorithm/catalog/core.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const Core core(s.size);
  const std::uint32_t k = ceil_log2(core.size), fold = core.folded > 0;
  return {k + 2 * fold, k + fold, 1, k + fold};
}

Schedule build(const Shape& s, Rank me) {
  const Core core(s.size);
  const int r = index(me);
  const Slice in{Space::input}, out{Space::output};
  Builder b(s, me, 1);
  const Slice got = b.scratch(0);
  const bool pair = r < 2 * core.folded;
  if (pair && r % 2 == 0) {  // its partner takes part for both
    b.send(Rank{r + 1}, in).recv(Rank{r + 1}, out);
    return std::move(b).finish();
  }
  if (pair)
    b.recv_reduce(PeerList{Rank{r - 1}, me}, in, out);
  else
    b.copy(in, out);
  const int i = pair ? r / 2 : r - core.folded;
  for (int bit = 1; bit < core.size; bit *= 2) {
    const Rank partner = core.rank(i ^ bit);
    b.send(partner, out);  // is complete only when the partner has read it, so:
    b.recv(partner, got);
    b.reduce(got, out);
  }
  if (pair) b.send(Rank{r - 1}, out);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_recursive_doubling = {
    "recursive_doubling", Collective::all_reduce, any_shape, cost, build, by_placement};

}  // namespace anyccl
