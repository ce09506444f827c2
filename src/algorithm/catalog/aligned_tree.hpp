#pragma once
// For algorithms that add up by the aligned tree (docs/adr/0056) in several steps.
//
// A node of size 2^k covers the ranks j*2^k up to (j+1)*2^k, as far as there are such. Its sum is
// that of its lower half plus that of its upper half.

#include <bit>
#include <span>
#include <vector>

#include "algorithm/catalog/levels.hpp"
#include "algorithm/catalog/tree.hpp"

namespace anyccl {

/// Ranks `first` up to `end`, the latter without.
struct RankRange {
  int first = 0, end = 0;
  bool has(int r) const { return first <= r && r < end; }
};

/// The node of this size with rank r in it.
inline RankRange node_with(int r, int size, int n) {
  const int first = r & -size;
  return {first, std::min(first + size, n)};
}

/// The rank that passes a node's sum on: the root, if it is in the node; else the first one.
inline int holder(RankRange node, int root) {
  return node.has(root) ? root : node.first;
}

/// The links of rank r: those that it receives from, the smallest node first, and the one that it
/// sends to. Each rank holds a node's sum until another rank holds the node above.
inline Node aligned_tree(int r, int root, int n) {
  Node links;
  for (int size = 1; size < n && links.parent.empty(); size *= 2) {
    const RankRange sibling = node_with(r ^ size, size, n);
    if (sibling.first >= n) continue;  // the node above has the same ranks
    const int above = holder(node_with(r, 2 * size, n), root);
    if (above == r)
      links.children.push_back(holder(sibling, root));
    else
      links.parent = {above};
  }
  return links;
}

/// `sum` becomes own + what the children send, in this order, each on its side of this rank.
/// Without children nothing is written to `sum`.
inline void add_up(Builder& b, Rank me, const std::vector<int>& children, Slice own, Slice sum) {
  for (const int child : children) {
    const Rank other{child};
    b.recv_reduce(other < me ? PeerList{other, me} : PeerList{me, other}, own, sum);
    own = sum;
  }
}

/// The largest nodes whose ranks all are on one host, in the order of the ranks.
struct HostNode {
  RankRange ranks;
  std::size_t host;  ///< By its place in ranks_by_host().
};

inline void find_host_nodes(const std::vector<std::size_t>& host_of, RankRange ranks,
                            std::vector<HostNode>& found) {
  const auto first = host_of.begin() + ranks.first, end = host_of.begin() + ranks.end;
  if (std::all_of(first, end, [&](std::size_t host) { return host == *first; })) {
    found.push_back({ranks, *first});
    return;
  }
  const int middle =
      ranks.first +
      static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks.end - ranks.first - 1)));
  find_host_nodes(host_of, {ranks.first, middle}, found);
  find_host_nodes(host_of, {middle, ranks.end}, found);
}

inline std::vector<HostNode> host_nodes(const std::vector<PeerList>& hosts, int n) {
  std::vector<std::size_t> host_of(static_cast<std::size_t>(n));
  for (std::size_t h = 0; h < hosts.size(); ++h)
    for (const Rank r : hosts[h]) host_of[uindex(r)] = h;
  std::vector<HostNode> found;
  find_host_nodes(host_of, {0, n}, found);
  return found;
}

/// Whether one step that folds these nodes, which lie side by side, makes the sum of the node of
/// all.
inline bool folds_to_a_node(std::span<const HostNode> nodes) {
  if (nodes.size() == 1) return true;
  const auto half = [](auto count) { return std::bit_floor(static_cast<std::size_t>(count) - 1); };
  const std::size_t middle = half(nodes.size());
  const int first = nodes.front().ranks.first, end = nodes.back().ranks.end;
  return nodes[middle].ranks.first - first == static_cast<int>(half(end - first)) &&
         folds_to_a_node(nodes.first(middle)) && folds_to_a_node(nodes.subspan(middle));
}

/// Whether each host has one node, and the sums of hosts, folded in their order, are the tree.
inline bool has_aligned_hosts(const Shape& s) {
  const std::vector<PeerList> hosts = ranks_by_host(s);
  const std::vector<HostNode> nodes = host_nodes(hosts, s.size);
  return nodes.size() == hosts.size() && folds_to_a_node(nodes);
}

/// The order of algorithms that fold inside each host, and these sums by hosts.
inline Order tree_of_aligned_hosts(const Shape& s) {
  return has_aligned_hosts(s) ? Order::tree : Order::placement;
}

}  // namespace anyccl
