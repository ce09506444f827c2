// Circulant: ceil(log2 n) rounds, whatever n is. In each round a rank sends the far half of the
// blocks it still has to a rank that many places on, and adds what it gets to the near half.
// Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv 2410.14234, 2024.
// Fewest rounds at the least traffic; sums in no rank order.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {ceil_log2(s.size), n - 1, n, ceil_log2(s.size)};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size;
  Builder b(s, me, 1);
  if (n == 1) b.copy({Space::input}, {Space::output});
  // Both count from my block, around the circle.
  Slice have{Space::input, uindex(me)};
  const Slice sums = b.scratch(uindex(me), static_cast<std::uint32_t>(n / 2 + n % 2));
  const auto part = [](Slice all, int from, int to) {
    return Slice{all.space, all.first + static_cast<std::uint32_t>(from),
                 static_cast<std::uint32_t>(to - from)};
  };
  for (int end = n, skip = end - end / 2; end > 1; end = skip, skip = end - end / 2, have = sums) {
    b.send(wrap(index(me) + skip, n), part(have, skip, end));
    b.recv_reduce(wrap(index(me) - skip, n), part(have, 0, end - skip),
                  skip == 1 ? Slice{Space::output} : part(sums, 0, end - skip));
    // With an odd number of blocks the last of the near half gets nothing in this round.
    if (end - skip < skip && have.space == Space::input)
      b.copy(part(have, skip - 1, skip), part(sums, skip - 1, skip));
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm reduce_scatter_circulant = {
    "circulant", Collective::reduce_scatter, any_shape, cost, build, by_position, kVForm};

}  // namespace anyccl
