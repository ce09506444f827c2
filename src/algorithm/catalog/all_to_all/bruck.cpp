// Bruck: a block that has j ranks to go travels the powers of two in j, so all blocks with that bit
// go together; log2 n rounds for any n. Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient
// algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS 8(11),
// 1997, with radix 2. Fewest rounds, but every block travels up to log2 n times; suits small blocks
// over a network.

#include <vector>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  std::uint32_t sent = 0;
  for (std::uint32_t j = 0; j < n; ++j) sent += static_cast<std::uint32_t>(std::popcount(j));
  return {ceil_log2(s.size), sent, n, 0};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  Builder b(s, me, 1);
  Slice row{Space::input, 0, uindex(Rank{n})};
  if (s.in_place && n > 1) {
    row = b.scratch(uindex(me) * row.count, row.count);
    b.copy({Space::input, 0, row.count}, row);
  }
  std::vector<Slice> at;  // where the block is that has j ranks to go
  for (int j = 0; j < n; ++j) at.push_back({row.space, row.first + uindex(wrap(r + j, n))});

  // Room for these blocks when they have gone the part `gone` of their way to where I hold them.
  const auto room = [&](const std::vector<int>& blocks, int gone) {
    Slice all{.count = 0};
    for (const int j : blocks) {
      const Rank from = wrap(r - (j & gone), n), to = wrap(index(from) + j, n);
      const Slice one = b.scratch(uindex(from) * uindex(Rank{n}) + uindex(to));
      all = {one.space, all.count == 0 ? one.first : all.first, all.count + 1};
    }
    return all;
  };
  for (int bit = 1; bit < n; bit *= 2) {
    std::vector<int> going;
    for (int j = bit; j < n; ++j)
      if ((j & bit) != 0) going.push_back(j);
    const Slice pack = room(going, bit - 1), come = room(going, 2 * bit - 1);
    for (std::uint32_t i = 0; i < pack.count; ++i) {
      Slice& block = at[static_cast<std::size_t>(going[i])];
      b.copy(block, {pack.space, pack.first + i});
      block = {come.space, come.first + i};
    }
    b.send(wrap(r + bit, n), pack);
    b.recv(wrap(r - bit, n), come);
  }
  for (int j = 0; j < n; ++j)
    b.copy(at[static_cast<std::size_t>(j)], {Space::output, uindex(wrap(r - j, n))});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_to_all_bruck = {"bruck", Collective::all_to_all, any_shape, cost, build};

}  // namespace anyccl
