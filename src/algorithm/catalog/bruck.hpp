#pragma once
// Bruck's all-to-all with any radix.

#include <vector>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {

/// A block that has j ranks to go travels the digits of j, so all blocks with one value of a digit
/// go together. `radix` > 1: digits of j; the lowest is travelled first.
inline Schedule bruck_all_to_all(const Shape& s, Rank me, int radix) {
  const int n = s.size, r = index(me);
  Builder b(s, me, 1);
  Slice row{Space::input, 0, uindex(Rank{n})};
  if (s.in_place && n > 1) {
    row = b.scratch(uindex(me) * row.count, row.count);
    b.copy({Space::input, 0, row.count}, row);
  }
  std::vector<Slice> at;  // where the block is that has j ranks to go
  for (int j = 0; j < n; ++j) at.push_back({row.space, row.first + uindex(wrap(r + j, n))});

  // Room for these blocks when I hold them and they have gone j % `below` of their way.
  const auto room = [&](const std::vector<int>& blocks, int below) {
    Slice all{.count = 0};
    for (const int j : blocks) {
      const Rank from = wrap(r - j % below, n), to = wrap(index(from) + j, n);
      const Slice one = b.scratch(uindex(from) * uindex(Rank{n}) + uindex(to));
      all = {one.space, all.count == 0 ? one.first : all.first, all.count + 1};
    }
    return all;
  };
  for (int weight = 1; weight < n; weight *= radix) {
    std::vector<std::vector<int>> going(static_cast<std::size_t>(radix));  // by this digit
    for (int j = weight; j < n; ++j)
      going[static_cast<std::size_t>(j / weight % radix)].push_back(j);
    for (int digit = 1; digit < radix && digit * weight < n; ++digit) {
      const std::vector<int>& blocks = going[static_cast<std::size_t>(digit)];
      const Slice pack = room(blocks, weight);
      for (std::uint32_t i = 0; i < pack.count; ++i)
        b.copy(at[static_cast<std::size_t>(blocks[i])], {pack.space, pack.first + i});
      b.send(wrap(r + digit * weight, n), pack);
    }
    for (int digit = 1; digit < radix && digit * weight < n; ++digit) {
      const std::vector<int>& blocks = going[static_cast<std::size_t>(digit)];
      const Slice come = room(blocks, weight * radix);
      b.recv(wrap(r - digit * weight, n), come);
      for (std::uint32_t i = 0; i < come.count; ++i)
        at[static_cast<std::size_t>(blocks[i])] = {come.space, come.first + i};
    }
  }
  for (int j = 0; j < n; ++j)
    b.copy(at[static_cast<std::size_t>(j)], {Space::output, uindex(wrap(r - j, n))});
  return std::move(b).finish();
}

/// Publications follow each other, so each digit's value is a round; every block travels each of
/// its digits that is not 0.
inline Cost bruck_cost(int n, int radix) {
  Cost cost{0, 0, static_cast<std::uint32_t>(n), 0};
  for (int weight = 1; weight < n; weight *= radix)
    for (int digit = 1; digit < radix && digit * weight < n; ++digit) ++cost.rounds;
  for (int j = 0; j < n; ++j)
    for (int rest = j; rest > 0; rest /= radix) cost.sent += rest % radix != 0 ? 1 : 0;
  return cost;
}

}  // namespace anyccl
