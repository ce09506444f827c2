#pragma once

#include <cstdint>
#include <vector>

#include "draw/movement.hpp"

namespace anyccl::cli {

// The place of everything in a picture. Pixels are whole numbers, so that a picture is the same
// bytes whichever compiler built the tool.

struct Point {
  int x = 0, y = 0;
};

/// A chunk as a small box; `at` is its upper left corner.
struct Box {
  Point at;
  Chunk chunk;
};

/// The arrow of message `message`.
struct Arrow {
  Point from, to;
  std::size_t message = 0;
};

/// The mark at which action `action` takes its messages: `at` is its middle.
struct Mark {
  Point at;
  int width = 0;
  std::size_t action = 0;
};

/// A horizontal strip: a round, the inputs above the first or the outputs below the last.
struct Band {
  int top = 0, bottom = 0;
};

struct Layout {
  int width = 0, height = 0;
  int box_width = 0, box_height = 0;
  std::vector<int> columns = {};  ///< The middle of each rank's column.
  int column_width = 0;
  int heads = 0;                 ///< Top of the ranks' names.
  Band before = {}, after = {};  ///< Inputs and outputs.
  std::vector<Band> rounds = {};
  std::vector<Box> boxes = {};
  std::vector<Arrow> arrows = {};  ///< One for each message.
  std::vector<Mark> marks = {};
  int legend = 0;  ///< Its top.
};

inline constexpr int kNumberHeight = 18;   ///< The part of a box with its number ...
inline constexpr int kStripesHeight = 12;  ///< ... and, of a sum, the part below.
inline constexpr int kHeadHeight = 22;
inline constexpr int kMarkHeight = 16;  ///< Where chunks are added up ...
inline constexpr int kDotHeight = 8;    ///< ... and where they are only received.

Layout layout_of(const Movement& movement);

}  // namespace anyccl::cli
