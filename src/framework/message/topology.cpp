#include "framework/message/topology.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "anyccl/anyccl.h"
#include "base/error.hpp"

namespace anyccl {
namespace {

/// Prime factors, the largest first, each to the smallest dimension so far.
void choose(std::vector<int>& dims, const std::vector<std::size_t>& open, int product) {
  std::vector<int> primes;
  for (int p = 2; p <= product / p; ++p)
    for (; product % p == 0; product /= p) primes.push_back(p);
  if (product > 1) primes.push_back(product);
  std::vector<int> factors(open.size(), 1);
  for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime)
    *std::min_element(factors.begin(), factors.end()) *= *prime;
  std::sort(factors.rbegin(), factors.rend());
  for (std::size_t i = 0; i < open.size(); ++i) dims[open[i]] = factors[i];
}

Result<std::vector<int>> complete_dims(std::span<const int> asked, int size) {
  std::vector<int> dims(asked.begin(), asked.end());
  std::vector<std::size_t> open;
  std::int64_t product = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] > size)
      return error(Code::invalid_argument, "dims[{}] is {} of {} ranks", i, dims[i], size);
    if (dims[i] == 0)
      open.push_back(i);
    else
      product = std::min<std::int64_t>(product * dims[i], std::int64_t{size} + 1);
  }
  if (product > size || size % product != 0 || (open.empty() && product != size))
    return error(Code::invalid_argument, "dims are {}, but the communicator has {} ranks",
                 fmt::to_string(fmt::join(dims, " x ")), size);
  choose(dims, open, size / static_cast<int>(product));
  return dims;
}

Result<RankTopology::Neighbors> neighbors_of(const char* name, std::span<const int> ranks,
                                             int size) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != ANYCCL_NO_RANK && (ranks[i] < 0 || ranks[i] >= size))
      return error(Code::invalid_argument, "{}[{}] is {}, which is not a rank of {}", name, i,
                   ranks[i], size);
  return RankTopology::Neighbors{{ranks.begin(), ranks.end()},
                                 std::vector<std::uint32_t>(ranks.size(), 0)};
}

}  // namespace

Result<RankTopology> RankTopology::make_grid(int size, int rank, std::span<const int> dims,
                                             std::span<const int> periodic) {
  RankTopology grid(size, rank);
  ANYCCL_TRY(grid.dims_, complete_dims(dims, size));
  for (std::size_t i = 0; i < dims.size(); ++i)
    grid.periodic_.push_back(i < periodic.size() && periodic[i] != 0);
  grid.add_grid_neighbors();
  return grid;
}

Result<RankTopology> RankTopology::make_graph(int size, int rank, std::span<const int> sources,
                                              std::span<const int> destinations) {
  RankTopology graph(size, rank);
  ANYCCL_TRY(graph.sources_, neighbors_of("sources", sources, size));
  ANYCCL_TRY(graph.destinations_, neighbors_of("destinations", destinations, size));
  return graph;
}

std::vector<int> RankTopology::coords_of(int rank) const {
  std::vector<int> coords(dims_.size());
  for (std::size_t i = coords.size(); i-- > 0;) {
    coords[i] = rank % dims_[i];
    rank /= dims_[i];
  }
  return coords;
}

int RankTopology::rank_at(std::span<const int> coords) const {
  int rank = 0;
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    const int n = dims_[i];
    if (!periodic_[i] && (coords[i] < 0 || coords[i] >= n)) return ANYCCL_NO_RANK;
    rank = rank * n + (coords[i] % n + n) % n;
  }
  return rank;
}

int RankTopology::shifted(std::size_t dim, std::int64_t displacement) const {
  std::vector<int> coords = coords_of(rank_);
  const std::int64_t n = dims_[dim], at = coords[dim] + displacement;
  if (periodic_[dim])
    coords[dim] = static_cast<int>((at % n + n) % n);
  else
    coords[dim] = at < 0 || at >= n ? -1 : static_cast<int>(at);
  return rank_at(coords);
}

int RankTopology::color(std::span<const int> keep) const {
  int color = 0;
  const std::vector<int> coords = coords_of(rank_);
  for (std::size_t i = 0; i < coords.size(); ++i)
    if (keep[i] == 0) color = color * dims_[i] + coords[i];
  return color;
}

/// What goes to the rank before along dimension i has tag 2i, to the one after 2i + 1.
void RankTopology::add_grid_neighbors() {
  for (std::size_t i = 0; i < dims_.size(); ++i)
    for (const std::uint32_t after : {0U, 1U}) {
      const int rank = shifted(i, after == 1 ? 1 : -1);
      const auto tag = static_cast<std::uint32_t>(2 * i);
      destinations_.ranks.push_back(rank);
      destinations_.tags.push_back(tag + after);
      sources_.ranks.push_back(rank);
      sources_.tags.push_back(tag + 1 - after);
    }
}

}  // namespace anyccl
