// Tree two level: two_level by the aligned tree for any placement of ranks. Inside each host every
// slice is reduced to the sums of the largest nodes of the tree whose ranks all are there; the
// leaders of the slice exchange these by pieces, and each adds up its piece along the tree. After
// Bayatpour et al., "Scalable reduction collectives with data partitioning-based multi-leader
// design" (DPML), SC 2017. Crosses the network like two_level, with as many vectors more as hosts
// have nodes: one if the ranks of hosts are aligned, where both are the same.

#include "algorithm/catalog/aligned_tree.hpp"

namespace anyccl {
namespace {

/// Adds up one slice, as its leader in one host.
class SliceSum {
 public:
  SliceSum(Builder& b, const Shape& s, const std::vector<PeerList>& hosts, std::size_t host,
           std::uint32_t slice)
      : b_(b),
        host_(host),
        n_(s.size),
        nodes_(host_nodes(hosts, s.size)),
        aligned_(nodes_.size() == hosts.size() && folds_to_a_node(nodes_)),
        pieces_(static_cast<std::uint32_t>(hosts.size())),
        first_(slice * pieces_) {
    for (const PeerList& ranks : hosts) leaders_.push_back(leader(ranks, slice));
    for (const HostNode& node : nodes_)
      if (node.host == host) mine_.push_back(node);
  }

  /// The slice of the output.
  Slice add_steps() {
    const Slice out{Space::output, first_, pieces_};
    const Slice piece{Space::output, first_ + static_cast<std::uint32_t>(host_)};
    const Slice sums = copy_by_piece(sums_of_host());
    const auto width = static_cast<std::uint32_t>(mine_.size());
    b_.send(leaders_, {sums.space, sums.first, width, width});
    const Slice own{sums.space, sums.first + static_cast<std::uint32_t>(host_) * width, width};
    if (aligned_) {
      b_.recv_reduce(leaders_, own, piece);
    } else {
      receive_node_sums(own);
      b_.copy(reduce_node({0, n_}), piece);
    }
    b_.send(leaders_, piece);
    b_.recv(leaders_, {Space::output, first_, 1, 1}, {Space::output, first_, 1, 1});
    return out;
  }

 private:
  /// The whole slice, summed over each node of this host, one after the other; in the output if the
  /// hosts are aligned.
  Slice sums_of_host() {
    Slice all{.count = 0};
    for (const HostNode& node : mine_) {
      PeerList ranks;
      for (int r = node.ranks.first; r < node.ranks.end; ++r) ranks.push_back(Rank{r});
      const Slice sum =
          aligned_ ? Slice{Space::output, first_, pieces_} : b_.scratch(first_, pieces_);
      b_.recv_reduce(ranks, {Space::input, first_, pieces_}, sum);
      all = {sum.space, all.count == 0 ? sum.first : all.first, all.count + pieces_};
    }
    return all;
  }

  /// Returns those sums piece by piece: for each the sums of all nodes, so that they travel as one
  /// message. Copies nothing if this host has one node.
  Slice copy_by_piece(Slice by_node) {
    const auto width = static_cast<std::uint32_t>(mine_.size());
    if (width == 1) return by_node;
    Slice all{.count = 0};
    for (std::uint32_t p = 0; p < pieces_; ++p)
      for (std::uint32_t k = 0; k < width; ++k) {
        const Slice room = b_.scratch(first_ + p);
        b_.copy({by_node.space, by_node.first + k * pieces_ + p}, room);
        all = {room.space, all.count == 0 ? room.first : all.first, all.count + 1};
      }
    return all;
  }

  /// Receives the sums of all nodes of my piece; lists them in parts_, in the order of the nodes.
  void receive_node_sums(Slice own) {
    std::vector<std::uint32_t> next(leaders_.size());
    for (std::size_t h = 0; h < leaders_.size(); ++h) {
      std::uint32_t width = 0;
      for (const HostNode& node : nodes_) width += node.host == h ? 1 : 0;
      if (h == host_) {
        next[h] = own.first;
        continue;
      }
      for (std::uint32_t k = 0; k < width; ++k) {
        const Slice room = b_.scratch(first_ + static_cast<std::uint32_t>(host_));
        if (k == 0) next[h] = room.first;
      }
      b_.recv(leaders_[h], {Space::scratch, next[h], width});
    }
    for (const HostNode& node : nodes_) parts_.push_back({Space::scratch, next[node.host]++});
  }

  /// The chunk that becomes the sum of this node of the tree.
  Slice reduce_node(RankRange ranks) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].ranks.first == ranks.first && nodes_[i].ranks.end == ranks.end)
        return parts_[i];
    const int middle =
        ranks.first +
        static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks.end - ranks.first - 1)));
    const Slice left = reduce_node({ranks.first, middle});
    b_.reduce(reduce_node({middle, ranks.end}), left);
    return left;
  }

  Builder& b_;
  std::size_t host_;
  int n_;
  std::vector<HostNode> nodes_, mine_;
  bool aligned_;  // each host has one node, and one step folds them all
  std::uint32_t pieces_, first_;
  PeerList leaders_;
  std::vector<Slice> parts_;  // by node
};

Schedule build(const Shape& s, Rank me) {
  const std::vector<PeerList> hosts = ranks_by_host(s);
  const PeerList& home = list_with(hosts, me);
  const auto host = static_cast<std::size_t>(&home - hosts.data());
  const auto slices = largest(hosts), pieces = static_cast<std::uint32_t>(hosts.size());
  const auto width = static_cast<std::uint32_t>(home.size());
  Builder b(s, me, slices * pieces);
  for (std::uint32_t first = 0; first < slices; first += width) {
    const PeerList leaders(home.begin(), home.begin() + std::min(width, slices - first));
    const Slice input{Space::input, first * pieces, pieces, pieces};
    const Slice output{Space::output, first * pieces, pieces, pieces};
    b.send(leaders, input);
    const auto place = std::find(leaders.begin(), leaders.end(), me) - leaders.begin();
    if (place < std::ssize(leaders))
      b.send(home,
             SliceSum(b, s, hosts, host, first + static_cast<std::uint32_t>(place)).add_steps());
    b.recv(leaders, output, output);
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_tree_two_level = {
    "tree_two_level", Collective::all_reduce, any_shape, nullptr, build, the_tree};

}  // namespace anyccl
