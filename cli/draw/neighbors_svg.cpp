#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "anyccl/anyccl.h"
#include "draw/colours.hpp"
#include "draw/layout.hpp"
#include "draw/map_page.hpp"
#include "draw/neighbors.hpp"

namespace anyccl::cli {
namespace {

constexpr int kRadius = 14, kMapCell = 64, kMapGap = 28;
constexpr int kLegendLine = 22;
constexpr std::string_view kMapStyle =
    ".edge path{fill:none;stroke-width:3}.edge:hover path{stroke-width:6}"
    ".arrow path{fill:none;stroke:#444;stroke-width:1.5}.arrow:hover path{stroke:#C00}"
    "circle{fill:#FFF;stroke:#444;stroke-width:1.5}";

std::string node(Point at, int rank, std::string_view words) {
  return fmt::format(
      "<g class=\"place\"><title>rank {0}{1}</title><circle cx=\"{2}\" cy=\"{3}\" r=\"{4}\"/>"
      "<text class=\"rank\" x=\"{2}\" y=\"{5}\">{0}</text></g>\n",
      rank, words, at.x, at.y, kRadius, at.y + 4);
}

// --- grids

/// The lines between neighbours: straight inside a block, where nobody is between the two, and bent
/// around those who are: to the other end of a circle, or to another block.
class GridLines {
 public:
  GridLines(const NeighborGrid& grid, const GridMap& map, Point origin)
      : grid_(grid), map_(map), origin_(origin) {}

  Point at(int rank) const { return {origin_.x + map_.x(rank), origin_.y + map_.y(rank)}; }

  /// From a rank to the one after it along `dim`.
  std::string line(std::size_t dim, int rank, int after) const {
    const Point a = at(rank), b = at(after);
    return fmt::format(
        "<g class=\"edge\"><title>{} and {}, along {}</title><path stroke=\"{}\" d=\"{}\"/></g>\n",
        rank, after, grid_.grid.names[dim], colour(dim), path(dim, a, b));
  }

 private:
  /// The value of the SVG attribute `d`: a straight line or a curve, as the class says.
  std::string path(std::size_t dim, Point a, Point b) const {
    const std::size_t from_last = grid_.grid.dims.size() - 1 - dim;
    if (a.x == b.x && a.y == b.y)  // a circle of one
      return fmt::format("M{} {}c{} {} {} {} 0 0", a.x, a.y, -40, 22, -22, 40);
    if (from_last == 0 && b.x == a.x + kMapCell) return fmt::format("M{} {}H{}", a.x, a.y, b.x);
    if (from_last == 1 && b.y == a.y + kMapCell) return fmt::format("M{} {}V{}", a.x, a.y, b.y);
    const int bend = 34;
    if (from_last == 0) return curve(a, {0, bend}, b);
    if (from_last == 1) return curve(a, {-bend, 0}, b);
    return curve(a, {0, b.x > a.x ? -bend : -bend - 12}, b);
  }
  static std::string curve(Point a, Point out, Point b) {
    const int in = a.x == b.x ? 0 : (b.x > a.x ? 1 : -1) * 12;
    const int down = a.y == b.y ? 0 : (b.y > a.y ? 1 : -1) * 12;
    return fmt::format("M{} {}C{} {} {} {} {} {}", a.x, a.y, a.x + out.x + in, a.y + out.y + down,
                       b.x + out.x - in, b.y + out.y - down, b.x, b.y);
  }

  const NeighborGrid& grid_;
  const GridMap& map_;
  const Point origin_;
};

std::string legend(const NeighborGrid& grid, int top) {
  std::string out;
  for (std::size_t dim = 0; dim < grid.grid.dims.size(); ++dim, top += kLegendLine)
    out += fmt::format(
        "<path d=\"M{} {}h28\" stroke=\"{}\" stroke-width=\"3\"/><text x=\"{}\" "
        "y=\"{}\">neighbours "
        "along {}{}</text>\n",
        MapPage::kMargin, top, colour(dim), MapPage::kMargin + 38, top + 4, grid.grid.names[dim],
        grid.periodic[dim] != 0 ? ", a circle" : "");
  return out;
}

// --- graphs

/// Ranks on a circle, the first one at the top, clockwise.
class Circle {
 public:
  explicit Circle(int ranks)
      : ranks_(ranks), radius_(std::max(60, ranks * 9)), middle_(radius_ + 56) {}
  int size() const { return 2 * middle_; }
  Point at(int rank) const { return point_of(rank, radius_); }
  /// Outside of the rank.
  Point beyond(int rank, int by) const { return point_of(rank, radius_ + by); }

 private:
  Point point_of(int rank, int radius) const {
    const double turn = 2 * std::numbers::pi * rank / ranks_;
    return {middle_ + static_cast<int>(std::lround(radius * std::sin(turn))),
            MapPage::kTitle + middle_ - static_cast<int>(std::lround(radius * std::cos(turn)))};
  }
  int ranks_, radius_, middle_;
};

/// The point at the rim of the rank at `from`, towards `to`.
Point rim_point(Point from, Point to) {
  const double x = to.x - from.x, y = to.y - from.y;
  const double length = std::max(1.0, std::hypot(x, y)), reach = kRadius + 1;
  return {from.x + static_cast<int>(std::lround(x / length * reach)),
          from.y + static_cast<int>(std::lround(y / length * reach))};
}

/// From a to b, bent to the left by `bend`, from rim to rim.
std::string arrow_path(Point a, Point b, int bend) {
  const double x = b.x - a.x, y = b.y - a.y, length = std::max(1.0, std::hypot(x, y));
  const Point control{(a.x + b.x) / 2 + static_cast<int>(std::lround(y / length * bend)),
                      (a.y + b.y) / 2 - static_cast<int>(std::lround(x / length * bend))};
  const Point from = rim_point(a, control), to = rim_point(b, control);
  return fmt::format("M{} {}Q{} {} {} {}", from.x, from.y, control.x, control.y, to.x, to.y);
}

std::string arrow(std::string_view words, std::string_view path, bool both_ways) {
  return fmt::format(
      "<g class=\"arrow\"><title>{}</title><path d=\"{}\" marker-end=\"url(#head)\"{}/></g>\n",
      words, path, both_ways ? " marker-start=\"url(#head)\"" : "");
}

/// All edges between two ranks, or of one with itself.
std::string arrows(const Circle& circle, int low, int high, const std::vector<GraphEdge>& edges) {
  const Point a = circle.at(low), b = circle.at(high);
  if (low == high) {
    const Point out = circle.beyond(low, 44);
    const int x = (out.y - a.y) / 2, y = (a.x - out.x) / 2;  // across
    const Point left{out.x - x, out.y - y}, right{out.x + x, out.y + y};
    const Point from = rim_point(a, left), to = rim_point(a, right);
    const std::string times = edges.size() > 1 ? fmt::format(", {} times", edges.size()) : "";
    return arrow(fmt::format("{0} to {0}{1}", low, times),
                 fmt::format("M{} {}C{} {} {} {} {} {}", from.x, from.y, left.x, left.y, right.x,
                             right.y, to.x, to.y),
                 false);
  }
  if (edges.size() == 2 && edges[0].from == edges[1].to)
    return arrow(fmt::format("{} to {} and back", low, high), arrow_path(a, b, 0), true);
  std::string out;
  const int several = static_cast<int>(edges.size());
  for (int i = 0; i < several; ++i) {
    const GraphEdge& edge = edges[static_cast<std::size_t>(i)];
    const int bend = (2 * i - several + 1) * 16;  // to the left of low to high
    const bool up = edge.from == low;
    out += arrow(fmt::format("{} to {}", edge.from, edge.to),
                 up ? arrow_path(a, b, bend) : arrow_path(b, a, -bend), false);
  }
  return out;
}

}  // namespace

std::string to_svg(const NeighborGrid& grid) {
  const GridMap map(grid.grid, kMapCell, kMapCell, kMapGap);
  constexpr int kAround = 44;  // for what is bent around ranks
  const GridLines lines(grid, map,
                        {MapPage::kMargin + kAround, MapPage::kTitle + kAround + kRadius});
  const int legend_top = MapPage::kTitle + 2 * kAround + map.height() - kMapCell + 2 * kRadius + 8;
  MapPage page{title(grid), kMapStyle, 0, 0, {}};
  page.body_width = map.width() - kMapCell + 2 * kAround + kRadius;
  page.body_height = legend_top - MapPage::kTitle +
                     static_cast<int>(grid.grid.dims.size()) * kLegendLine - kLegendLine + 4;
  for (std::size_t dim = 0; dim < grid.grid.dims.size(); ++dim) {
    const std::vector<Sides> sides = sides_of(grid, dim);
    for (int rank = 0; rank < grid.grid.ranks; ++rank)
      if (const int after = sides[static_cast<std::size_t>(rank)].after; after != ANYCCL_NO_RANK)
        page.body += lines.line(dim, rank, after);
  }
  for (int rank = 0; rank < grid.grid.ranks; ++rank) page.body += node(lines.at(rank), rank, "");
  page.body += legend(grid, legend_top);
  return to_svg(page);
}

std::string to_svg(const NeighborGraph& graph) {
  const Circle circle(graph.ranks);
  std::map<std::pair<int, int>, std::vector<GraphEdge>> between;
  for (const GraphEdge& edge : graph.edges)
    between[std::minmax(edge.from, edge.to)].push_back(edge);
  MapPage page{title(graph), kMapStyle, circle.size(), circle.size(), {}};
  page.body =
      "<defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" "
      "markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\">"
      "<path d=\"M0 1L10 5L0 9z\" fill=\"#444\" stroke=\"none\"/></marker></defs>\n";
  for (const auto& [pair, edges] : between)
    page.body += arrows(circle, pair.first, pair.second, edges);
  for (int rank = 0; rank < graph.ranks; ++rank) page.body += node(circle.at(rank), rank, "");
  return to_svg(page);
}

}  // namespace anyccl::cli
