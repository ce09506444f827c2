// Circulant: ceil(log2 n) rounds, whatever n is; the mirror of the circulant reduce-scatter.
// Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv 2410.14234, 2024.
// As few rounds as Bruck with other distances; ours reads whole runs of blocks, as Bruck's does.

#include <vector>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {ceil_log2(s.size), n - 1, 1, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const auto blocks = [&](int from, int to) {  // counted from mine, around the circle
    return Slice{Space::output, uindex(wrap(r + from, n)), static_cast<std::uint32_t>(to - from)};
  };
  Builder b(s, me, 1);
  b.copy({Space::input}, blocks(0, 1));
  std::vector<int> ends;
  for (int end = n; end > 1; end -= end / 2) ends.push_back(end);
  for (std::size_t k = ends.size(); k-- > 0;) {
    const int end = ends[k], skip = end - end / 2;
    b.send(wrap(r - skip, n), skip == 1 ? Slice{Space::input} : blocks(0, end - skip));
    b.recv(wrap(r + skip, n), blocks(skip, end));
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_gather_circulant = {
    "circulant", Collective::all_gather, any_shape, cost, build, by_position, kVForm};

}  // namespace anyccl
