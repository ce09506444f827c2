// Circulant: a reduce-scatter and an all-gather of ceil(log2 n) rounds each, whatever n is. In each
// round a rank sends the far half of the blocks it still has to a rank that many places on, and
// adds what it gets to the near half. Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce
// Algorithms", arXiv 2410.14234, 2024. Fewest rounds at the least traffic; sums in no rank order.

#include <vector>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {.rounds = 2 * ceil_log2(s.size),
          .sent = 2 * (n - 1),
          .of = n,
          .roundings = ceil_log2(s.size)};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const auto blocks = [&](Space space, int from, int to) {  // counted from mine, around the circle
    return Slice{space, uindex(wrap(r + from, n)), static_cast<std::uint32_t>(to - from)};
  };
  Builder b(s, me, static_cast<std::uint32_t>(n));
  if (n == 1) b.copy({Space::input}, {Space::output});
  std::vector<int> ends;
  Space have = Space::input;
  for (int end = n; end > 1; end = ends.back() - ends.back() / 2, have = Space::output) {
    const int skip = end - end / 2;
    ends.push_back(end);
    b.send(wrap(r + skip, n), blocks(have, skip, end));
    b.recv_reduce(wrap(r - skip, n), blocks(have, 0, end - skip),
                  blocks(Space::output, 0, end - skip));
    // With an odd number of blocks the last of the near half gets nothing in this round.
    if (end - skip < skip && have == Space::input)
      b.copy(blocks(have, skip - 1, skip), blocks(Space::output, skip - 1, skip));
  }
  for (std::size_t k = ends.size(); k-- > 0;) {
    const int end = ends[k], skip = end - end / 2;
    b.send(wrap(r - skip, n), blocks(Space::output, 0, end - skip));
    b.recv(wrap(r + skip, n), blocks(Space::output, skip, end));
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_circulant = {"circulant", Collective::all_reduce, any_shape, cost,
                                               build};

}  // namespace anyccl
