#include "draw/grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.hpp"
#include "draw/colours.hpp"
#include "framework/communicator/topology.hpp"

namespace anyccl::cli {
namespace {

constexpr int kMostRanks = 256;

Status not_a_dimension(const std::string& word) {
  return error(Code::invalid_argument, "'{}' is not a dimension, as tensor=2", word);
}

std::string title(const Grid& grid) {
  std::vector<std::string> sizes;
  for (std::size_t i = 0; i < grid.dims.size(); ++i)
    sizes.push_back(fmt::format("{} {}", grid.names[i], grid.dims[i]));
  return fmt::format("{}: {} ranks, the last dimension fastest", fmt::join(sizes, " x "),
                     grid.ranks);
}

std::string title(const Grid& grid, std::size_t dim) {
  const int size = grid.dims[dim], groups = grid.ranks / size;
  return fmt::format("{}: {} group{} of {}", grid.names[dim], groups, groups == 1 ? "" : "s", size);
}

/// The map: the last dimension goes to the right and the one before it down; each place of the
/// others is a block to the right.
class Map {
 public:
  explicit Map(const Grid& grid)
      : columns_(grid.dims.back()),
        rows_(grid.dims.size() > 1 ? grid.dims[grid.dims.size() - 2] : 1),
        blocks_(grid.ranks / columns_ / rows_) {}
  int x(int rank) const {
    return rank % columns_ * kCell + rank / (columns_ * rows_) * (columns_ * kCell + kGap);
  }
  int y(int rank) const { return rank / columns_ % rows_ * kHeight; }
  int width() const { return blocks_ * (columns_ * kCell + kGap) - kGap; }
  int height() const { return rows_ * kHeight; }

  static constexpr int kCell = 36, kHeight = 26, kGap = 18;

 private:
  int columns_, rows_, blocks_;
};

}  // namespace

Result<Grid> read_grid(std::span<const std::string> words) {
  Grid grid;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    int size = 0;
    const char* const end = word.data() + word.size();
    if (equals == 0 || equals == std::string::npos) return not_a_dimension(word);
    const auto read = std::from_chars(word.data() + equals + 1, end, size);
    if (read.ec != std::errc() || read.ptr != end || size < 1) return not_a_dimension(word);
    const bool plain = std::all_of(word.data(), word.data() + equals, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-';
    });
    if (!plain) return not_a_dimension(word);
    if (size > kMostRanks / grid.ranks)
      return error(Code::invalid_argument, "a grid of more than {} ranks cannot be drawn",
                   kMostRanks);
    grid.names.push_back(word.substr(0, equals));
    grid.dims.push_back(size);
    grid.ranks *= size;
  }
  if (grid.dims.empty())
    return error(Code::invalid_argument, "a grid needs dimensions, as pipeline=4 data=2 tensor=2");
  return grid;
}

std::vector<std::vector<std::vector<int>>> groups_of(const Grid& grid) {
  std::vector<std::vector<std::vector<int>>> all;
  for (std::size_t dim = 0; dim < grid.dims.size(); ++dim) {
    std::vector<int> keep(grid.dims.size());
    keep[dim] = 1;
    auto& groups = all.emplace_back(static_cast<std::size_t>(grid.ranks / grid.dims[dim]));
    for (int rank = 0; rank < grid.ranks; ++rank) {
      const auto topology = RankTopology::make_grid(grid.ranks, rank, grid.dims, {});
      groups[static_cast<std::size_t>(topology->color(keep))].push_back(rank);
    }
  }
  return all;
}

std::string to_text(const Grid& grid) {
  std::string text = title(grid) + "\n";
  const auto groups = groups_of(grid);
  for (std::size_t dim = 0; dim < groups.size(); ++dim) {
    text += "\n" + title(grid, dim) + "\n";
    for (const std::vector<int>& group : groups[dim])
      text += fmt::format("  {}\n", fmt::join(group, " "));
  }
  return text;
}

std::string to_svg(const Grid& grid) {
  constexpr int kMargin = 16, kTitle = 30;
  const Map map(grid);
  const auto groups = groups_of(grid);
  const int panel = map.height() + 46;
  const int width = std::max(map.width(), 9 * static_cast<int>(title(grid).size())) + 2 * kMargin;
  const int height = kTitle + panel * static_cast<int>(groups.size()) + kMargin;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">\n<style>text{{font-family:sans-serif;font-size:12px;fill:#222}}.title{{font-size:"
      "15px;font-weight:bold}}.rank{{text-anchor:middle}}rect.cell{{stroke:#444}}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#FFF\"/>\n"
      "<text class=\"title\" x=\"{2}\" y=\"24\">{3}</text>\n",
      width, height, kMargin, title(grid));
  for (std::size_t dim = 0; dim < groups.size(); ++dim) {
    const int top = kTitle + panel * static_cast<int>(dim);
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}; one colour, one group{}</text>\n", kMargin,
                       top + 26, title(grid, dim),
                       groups[dim].size() > std::size(kColours) ? " (8 colours, in turn)" : "");
    for (std::size_t g = 0; g < groups[dim].size(); ++g)
      for (const int rank : groups[dim][g]) {
        const int x = kMargin + map.x(rank), y = top + 34 + map.y(rank);
        out += fmt::format(
            "<g class=\"place\"><title>rank {0}: group {1} of {2}</title><rect class=\"cell\" "
            "x=\"{3}\" y=\"{4}\" width=\"{5}\" height=\"{6}\" fill=\"{7}\"/><text class=\"rank\" "
            "x=\"{8}\" y=\"{9}\">{0}</text></g>\n",
            rank, g, grid.names[dim], x, y, Map::kCell, Map::kHeight, colour(g), x + Map::kCell / 2,
            y + 17);
      }
  }
  return out + "</svg>\n";
}

}  // namespace anyccl::cli
