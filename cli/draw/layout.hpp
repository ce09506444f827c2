#pragma once

#include <cstdint>
#include <vector>

#include "draw/movement.hpp"

namespace anyccl::cli {

// Where everything of a picture lies. Pixels are whole numbers, so that a picture is the same bytes
// whichever compiler built the tool.

struct Point {
  int x = 0, y = 0;
};

/// A chunk as a small box; `at` is its upper left corner.
struct Box {
  Point at;
  Chunk chunk;
};

/// Of message `message`.
struct Arrow {
  Point from, to;
  std::size_t message = 0;
};

/// Where action `action` takes its messages: `at` is the middle.
struct Mark {
  Point at;
  int width = 0;
  std::size_t action = 0;
};

/// What lies between two heights: a round, or what is there before the first and after the last.
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

inline constexpr int kNumberHeight = 18;   ///< Of a box, its number's part ...
inline constexpr int kStripesHeight = 12;  ///< ... and, of what is added up, that below it.
inline constexpr int kHeadHeight = 22;
inline constexpr int kMarkHeight = 16;  ///< Where chunks are added up ...
inline constexpr int kDotHeight = 8;    ///< ... and where they are only received.

Layout layout_of(const Movement& movement);

}  // namespace anyccl::cli
