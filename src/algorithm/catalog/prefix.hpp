#pragma once
// For scans.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {

/// Leaves in `result` the sum of `own` of the ranks `first`..me, for first <= me. In round k each
/// rank gets what the rank 2^k before it has, which is the sum of 2^k ranks.
inline void scan_by_doubling(Builder& b, int first, int me, int n, Slice own, Slice result) {
  Slice sum = own;
  for (int distance = 1; first + distance < n; distance *= 2) {
    if (me + distance < n) b.send(Rank{me + distance}, sum);
    if (me - distance < first) continue;
    const bool last = me - 2 * distance < first;
    const Slice more = last ? result : b.scratch(0);
    b.recv_reduce(PeerList{Rank{me - distance}, Rank{me}}, sum, more);
    sum = more;
  }
  if (me == first) b.copy(own, result);
}

/// The ranks before `end`.
inline PeerList ranks_before(int end) {
  PeerList ranks;
  for (int r = 0; r < end; ++r) ranks.push_back(Rank{r});
  return ranks;
}
inline PeerList ranks_after(int r, int n) {
  PeerList ranks;
  while (++r < n) ranks.push_back(Rank{r});
  return ranks;
}

}  // namespace anyccl
