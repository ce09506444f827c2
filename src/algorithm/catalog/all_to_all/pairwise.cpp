// Pairwise exchange: in round k everyone sends to the rank k further on and receives from the one k
// before, so that no rank is asked by two at once. Thakur, Rabenseifner and Gropp, "Optimization of
// collective communication operations in MPICH", IJHPCA 19(1), 2005. Least traffic in n-1 messages
// that follow each other; suits large messages over a network. In place, peers read a copy.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  Builder b(s, me, 1);
  const auto block = [](Space space, Rank rank) { return Slice{space, uindex(rank)}; };
  b.copy(block(Space::input, me), block(Space::output, me));
  for (int k = 1; k < n; ++k) {
    const Rank to = wrap(r + k, n), from = wrap(r - k, n);
    Slice sent = block(Space::input, to);
    if (s.in_place) {
      sent = b.scratch(uindex(me) * static_cast<std::uint32_t>(n) + uindex(to));
      b.copy(block(Space::input, to), sent);
    }
    b.send(to, sent);
    b.recv(from, block(Space::output, from));
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_to_all_pairwise = {"pairwise", Collective::all_to_all, any_shape,
                                              nullptr, build};

}  // namespace anyccl
