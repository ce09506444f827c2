#pragma once

#include <span>
#include <string>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// A grid of ranks in row-major order, and the groups that ranks form along each dimension.
struct Grid {
  std::vector<std::string> names;
  std::vector<int> dims;
  int ranks = 1;
};

/// From words like "tensor=2". Errors: invalid_argument naming the word, or too many ranks.
Result<Grid> read_grid(std::span<const std::string> words);

/// The groups of each dimension, [dimension][group], each in the order of its ranks.
std::vector<std::vector<std::vector<int>>> groups_of(const Grid& grid);

/// A line for each group, below the title of its dimension.
std::string to_text(const Grid& grid);
/// A picture that needs no other file: one map of all ranks for each dimension, its groups
/// coloured.
std::string to_svg(const Grid& grid);

}  // namespace anyccl::cli
