#pragma once

#include <string>
#include <string_view>

#include "draw/grid.hpp"

namespace anyccl::cli {

/// Where the ranks of a grid are on a map: the last dimension goes to the right and the one before
/// it down; each place of the others is a block to the right.
class GridMap {
 public:
  /// `cell`, `height`: from one rank to the next; `gap`: between blocks.
  GridMap(const Grid& grid, int cell, int height, int gap)
      : columns_(grid.dims.back()),
        rows_(grid.dims.size() > 1 ? grid.dims[grid.dims.size() - 2] : 1),
        blocks_(grid.ranks / columns_ / rows_),
        cell_(cell),
        height_(height),
        gap_(gap) {}
  int x(int rank) const {
    return rank % columns_ * cell_ + rank / (columns_ * rows_) * (columns_ * cell_ + gap_);
  }
  int y(int rank) const { return rank / columns_ % rows_ * height_; }
  int width() const { return blocks_ * (columns_ * cell_ + gap_) - gap_; }
  int height() const { return rows_ * height_; }

 private:
  int columns_, rows_, blocks_, cell_, height_, gap_;
};

/// A picture of ranks that needs no other file: a title above `body`.
struct MapPage {
  static constexpr int kMargin = 16, kTitle = 30;
  std::string title;
  std::string_view style;  ///< Beyond that of text.
  int body_width = 0, body_height = 0;
  std::string body;
};
std::string to_svg(const MapPage& page);

}  // namespace anyccl::cli
