// 2D torus: a reduce-scatter ring along each row, reduce-scatter and all-gather rings along each
// column, an all-gather ring along each row. Mikami et al., "Massively distributed SGD:
// ImageNet/ResNet-50 training in a flash", arXiv 1811.05233, 2018. The ring's traffic, only between
// neighbours of a torus as square as n allows, in 2 (rows + columns - 2) rounds instead of 2 (n-1).
// For all n that are products.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

int row_count(int n) {  // the greatest divisor that is no greater than the number of columns
  int rows = 1;
  for (int d = 2; d * d <= n; ++d)
    if (n % d == 0) rows = d;
  return rows;
}

bool supports(const Shape& s) {
  return row_count(s.size) > 1;
}

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size),
             a = static_cast<std::uint32_t>(row_count(s.size));
  return {2 * (a + n / a - 2), 2 * (n - 1), n, a + n / a - 2};
}

// A circle of ranks and the blocks that it divides: one for each of them.
struct Ring {
  Slice block(Space space, int i) const {
    return {space, first + uindex(wrap(i, size)) * count, count};
  }
  int size, at;  // how many ranks, and where this one is
  Rank next, prev;
  std::uint32_t first, count;  // chunks: of all blocks, and how many each has
};

void reduce_scatter(Builder& b, const Ring& ring, Space own) {  // then block at + 1 is mine
  for (int k = 0; k < ring.size - 1; ++k) {
    b.send(ring.next, ring.block(k == 0 ? own : Space::output, ring.at - k));
    b.recv_reduce(ring.prev, ring.block(own, ring.at - k - 1),
                  ring.block(Space::output, ring.at - k - 1));
  }
}

/// Begins with block at + 1: reduce_scatter() leaves that one to this rank.
void all_gather(Builder& b, const Ring& ring) {
  for (int k = 0; k < ring.size - 1; ++k) {
    b.send(ring.next, ring.block(Space::output, ring.at + 1 - k));
    b.recv(ring.prev, ring.block(Space::output, ring.at - k));
  }
}

Schedule build(const Shape& s, Rank me) {
  const int height = row_count(s.size), width = s.size / height;
  const int y = index(me) / width, x = index(me) % width;
  const auto rank = [&](int row, int column) {
    return Rank{index(wrap(row, height)) * width + index(wrap(column, width))};
  };
  const Ring row{width, x, rank(y, x + 1), rank(y, x - 1), 0, static_cast<std::uint32_t>(height)};
  const Ring column{
      height, y, rank(y + 1, x), rank(y - 1, x), row.block(Space::output, x + 1).first, 1};
  Builder b(s, me, static_cast<std::uint32_t>(s.size));
  reduce_scatter(b, row, Space::input);
  reduce_scatter(b, column, Space::output);
  all_gather(b, column);
  all_gather(b, row);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_torus_2d = {"torus_2d", Collective::all_reduce,
                                              supports,   cost,
                                              build,      by_position,
                                              0,          "a product of two numbers above 1"};

}  // namespace anyccl
