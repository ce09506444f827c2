#include "draw/grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.hpp"
#include "draw/colours.hpp"
#include "draw/map_page.hpp"
#include "framework/message/topology.hpp"

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

constexpr int kCell = 36, kHeight = 26, kGap = 18;

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
  const GridMap map(grid, kCell, kHeight, kGap);
  const auto groups = groups_of(grid);
  const int panel = map.height() + 46;
  MapPage page{title(grid),
               "rect.cell{stroke:#444}",
               map.width(),
               panel * static_cast<int>(groups.size()),
               {}};
  for (std::size_t dim = 0; dim < groups.size(); ++dim) {
    const int top = MapPage::kTitle + panel * static_cast<int>(dim);
    page.body += fmt::format(
        "<text x=\"{}\" y=\"{}\">{}; one colour, one group{}</text>\n", MapPage::kMargin, top + 26,
        title(grid, dim), groups[dim].size() > std::size(kColours) ? " (8 colours, in turn)" : "");
    for (std::size_t g = 0; g < groups[dim].size(); ++g)
      for (const int rank : groups[dim][g]) {
        const int x = MapPage::kMargin + map.x(rank), y = top + 34 + map.y(rank);
        page.body += fmt::format(
            "<g class=\"place\"><title>rank {0}: group {1} of {2}</title><rect class=\"cell\" "
            "x=\"{3}\" y=\"{4}\" width=\"{5}\" height=\"{6}\" fill=\"{7}\"/><text class=\"rank\" "
            "x=\"{8}\" y=\"{9}\">{0}</text></g>\n",
            rank, g, grid.names[dim], x, y, kCell, kHeight, colour(g), x + kCell / 2, y + 17);
      }
  }
  return to_svg(page);
}

}  // namespace anyccl::cli
