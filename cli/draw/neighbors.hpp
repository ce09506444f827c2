#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "draw/grid.hpp"

namespace anyccl::cli {

/// A grid of which dimensions may be circles: who is next to whom.
struct NeighborGrid {
  Grid grid;
  std::vector<int> periodic;  ///< By dimension: not 0, if it is a circle.
};

/// `circles`: the names of periodic dimensions. Errors: those of read_grid(), and invalid_argument
/// naming a circle that is no dimension.
Result<NeighborGrid> read_neighbor_grid(std::span<const std::string> words,
                                        std::span<const std::string> circles);

struct GraphEdge {
  int from = 0, to = 0;
};

/// Any ranks, and who sends to whom.
struct NeighborGraph {
  int ranks = 0;
  std::vector<GraphEdge> edges;
};

/// From edges like "0>1,1>2" or, both ways, "0-1"; "0>1>2" is two of them. They are separated by
/// commas or white space; what follows a # in a line is a comment. `file`: where the text is from,
/// or nothing. `ranks`: how many there are; otherwise as many as the edges name. Errors:
/// invalid_argument naming the place, the words there, and the fault.
Result<NeighborGraph> read_edges(std::string_view text, std::string_view file,
                                 std::optional<int> ranks);

/// A table with a line for each rank.
std::string to_text(const NeighborGrid& grid);
std::string to_text(const NeighborGraph& graph);
/// A picture that needs no other file: of a grid one line for each two neighbours, coloured by
/// dimension; of a graph one arrow for each edge, and one with two heads where it goes both ways.
std::string to_svg(const NeighborGrid& grid);
std::string to_svg(const NeighborGraph& graph);

/// The heading of both forms, such as "A graph of 4 ranks and 5 edges".
std::string title(const NeighborGrid& grid);
std::string title(const NeighborGraph& graph);
/// The ranks before and after one rank along a dimension, or ANYCCL_NO_RANK.
struct Sides {
  int before = 0, after = 0;
};
/// The sides of each rank along `dim`, by rank.
std::vector<Sides> sides_of(const NeighborGrid& grid, std::size_t dim);

}  // namespace anyccl::cli
