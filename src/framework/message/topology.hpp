#pragma once
// Which ranks are neighbours.

#include <cstdint>
#include <span>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl {

/// Which ranks a rank exchanges messages with, as the program sees it: a grid, or any graph. One
/// rank's view, immutable once it is made. Ranks are numbers of the communicator, or
/// ANYCCL_NO_RANK.
class RankTopology {
 public:
  /// Neighbour i of a list is ranks[i], and tags[i] tells its messages from those of the same rank
  /// in another place of the list.
  struct Neighbors {
    std::vector<int> ranks;
    std::vector<std::uint32_t> tags;
  };

  /// Dimensions that are 0 are chosen. Errors: invalid_argument, naming the dimensions.
  static Result<RankTopology> make_grid(int size, int rank, std::span<const int> dims,
                                        std::span<const int> periodic);
  static Result<RankTopology> make_graph(int size, int rank, std::span<const int> sources,
                                         std::span<const int> destinations);

  int size() const { return size_; }
  int rank() const { return rank_; }
  const std::vector<int>& dims() const { return dims_; }  ///< None of a graph.
  const Neighbors& sources() const { return sources_; }
  const Neighbors& destinations() const { return destinations_; }

  // These are for grids:
  std::vector<int> coords_of(int rank) const;
  int rank_at(std::span<const int> coords) const;
  /// The rank that is `displacement` further on along dimension `dim`.
  int shifted(std::size_t dim, std::int64_t displacement) const;
  /// Equal for ranks whose coordinates differ only where `keep` is not 0.
  int color(std::span<const int> keep) const;

 private:
  RankTopology(int size, int rank) : size_(size), rank_(rank) {}
  void add_grid_neighbors();

  int size_, rank_;
  std::vector<int> dims_;
  std::vector<bool> periodic_;
  Neighbors sources_, destinations_;
};

}  // namespace anyccl
