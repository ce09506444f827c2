#pragma once
// Trees over positions, for the algorithms that climb one.

#include <algorithm>
#include <bit>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {

/// The positions above and below a position.
struct Node {
  std::vector<int> parent = {};  ///< One, or none at the top.
  std::vector<int> children = {};
};

/// Binomial tree over 0..n-1, 0 at the top: the parent of v is v without its lowest bit. The child
/// with the most below it comes first.
inline Node binomial_tree(int v, int n) {
  Node node;
  const int low = v > 0 ? v & -v : static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)));
  if (v > 0) node.parent = {v - low};
  for (int bit = low / 2; bit > 0; bit /= 2)
    if (v + bit < n) node.children.push_back(v + bit);
  return node;
}

/// How many positions are in the part of that tree that starts at v: v itself and those after it.
inline int blocks_below(int v, int n) {
  return v == 0 ? n : std::min(v & -v, n - v);
}

/// Binary tree over 1..n whose in-order is 1..n, so all odd positions are leaves. Its top hangs
/// below position 0.
inline Node in_order_tree(int v, int n) {
  if (v == 0) return {{}, {static_cast<int>(std::bit_floor(static_cast<unsigned>(n)))}};
  const int low = v & -v, up = (v - low) | (2 * low);
  Node node{{up <= n ? up : v - low}};
  if (low > 1) node.children.push_back(v - low / 2);
  for (int bit = low / 2; bit > 0 && node.children.size() < 2; bit /= 2)
    if (v + bit <= n) node.children.push_back(v + bit);
  return node;
}

/// Two such trees in which nobody has children twice: the second is the first one mirrored, or
/// shifted if n is odd. Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth
/// broadcast, reduction and scan", Parallel Computing 35(12), 2009.
inline Node two_trees(int tree, int v, int n) {
  const auto place = [&](int p, int shift) {
    if (tree == 0 || p == 0) return p;
    return n % 2 == 0 ? n + 1 - p : (p - 1 + shift) % n + 1;
  };
  Node node = in_order_tree(place(v, n - 1), n);
  for (std::vector<int>* list : {&node.parent, &node.children})
    for (int& p : *list) p = place(p, 1);
  return node;
}

/// The ranks at some positions of a circle of n that starts at rank `first`.
inline PeerList ranks_at(const std::vector<int>& positions, int first, int n) {
  PeerList ranks;
  for (int p : positions) ranks.push_back(wrap(p + first, n));
  return ranks;
}

}  // namespace anyccl
