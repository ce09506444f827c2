#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "draw/map_page.hpp"
#include "simulate/link_loads.hpp"

namespace anyccl::cli {

namespace {

constexpr double kCell = 44, kLevel = 110, kRadius = 11;
constexpr std::string_view kStyle =
    ".cable path{fill:none}.cable:hover path{stroke:#06C}"
    "circle,.node rect{fill:#FFF;stroke:#444}.node text{text-anchor:middle;font-size:10px}";

class NetworkPicture {
 public:
  NetworkPicture(const Network& network, const ReplayResult* result)
      : network_(network), result_(result), at_(network.nodes()) {
    if (network.map().empty())
      place_levels();
    else
      place_map();
    for (std::size_t l = 0; l < network.links().size(); ++l)
      if (!is_hidden(network.links()[l])) most_ = std::max(most_, carried(l));
  }

  std::string run() {
    std::string body;
    const auto& links = network_.links();
    for (std::size_t l = 0; l < links.size(); ++l)
      if (links[l].from < links[l].to && !is_hidden(links[l])) body += cable(l);
    for (std::uint32_t node = 0; node < network_.nodes(); ++node)
      if (network_.map().empty() || node < network_.ends()) body += circle(node);
    Network::Place end;
    for (const Network::Place& place : at_) {
      end.x = std::max(end.x, place.x);
      end.y = std::max(end.y, place.y);
    }
    std::string title = network_.text();
    if (most_ > 0) title += fmt::format("; the reddest carried {:.3f} MB", most_ / 1e6);
    return to_svg(MapPage{title, kStyle, static_cast<int>(end.x + 2 * kRadius),
                          static_cast<int>(end.y + 2 * kRadius), std::move(body)});
  }

 private:
  /// Ends are drawn at their routers.
  void place_map() {
    const std::uint32_t ends = network_.ends();
    for (std::uint32_t i = 0; i < ends; ++i)
      at_[i] = at_[ends + i] = {left() + kCell * network_.map()[i].x,
                                top() + kCell * network_.map()[i].y};
  }

  /// Ends at the bottom, each level above the one before it, as wide as the widest.
  void place_levels() {
    std::uint32_t widest = 0;
    for (const Network::Level& level : network_.levels()) widest = std::max(widest, level.count);
    double y = top() + kLevel * static_cast<double>(network_.levels().size() - 1);
    for (const Network::Level& level : network_.levels()) {
      const double cell = kCell * widest / level.count;
      for (std::uint32_t i = 0; i < level.count; ++i)
        at_[level.first + i] = {left() + cell * (i + 0.5), y};
      y -= kLevel;
    }
  }

  static double left() { return MapPage::kMargin + kRadius; }
  static double top() { return MapPage::kTitle + 3 * kRadius; }

  bool is_hidden(const Network::Link& link) const {
    return !network_.map().empty() && std::min(link.from, link.to) < network_.ends();
  }

  double carried(std::size_t link) const {
    return result_ == nullptr ? 0 : result_->link_bytes[link];
  }

  std::size_t back(std::size_t link) const {
    const auto& links = network_.links();
    const auto found = std::find_if(links.begin(), links.end(), [&](const Network::Link& l) {
      return l.from == links[link].to && l.to == links[link].from;
    });
    return static_cast<std::size_t>(found - links.begin());
  }

  std::string cable(std::size_t link) const {
    const Network::Link& l = network_.links()[link];
    const double there = carried(link), back_again = carried(back(link));
    const double load = most_ > 0 ? std::max(there, back_again) / most_ : 0;
    const auto mix = [load](int quiet, int busy) {
      return static_cast<int>(std::lround(quiet + load * (busy - quiet)));
    };
    const std::string words = result_ == nullptr
                                  ? fmt::format("{} - {}", shown(l.from), shown(l.to))
                                  : fmt::format("{} - {}: {:.3f} MB, back {:.3f} MB", shown(l.from),
                                                shown(l.to), there / 1e6, back_again / 1e6);
    return fmt::format(
        "<g class=\"cable\"><title>{}</title><path stroke=\"#{:02X}{:02X}{:02X}\" "
        "stroke-width=\"{:.1f}\" "
        "d=\"{}\"/></g>\n",
        words, mix(0xBB, 0xCC), mix(0xBB, 0x00), mix(0xBB, 0x00), 1 + 3 * load,
        path(at_[l.from], at_[l.to]));
  }

  /// Bent around the nodes between two of one row or column.
  static std::string path(Network::Place a, Network::Place b) {
    const double dx = b.x - a.x, dy = b.y - a.y, length = std::hypot(dx, dy);
    const bool straight = (std::abs(dx) > 1 && std::abs(dy) > 1) || length < 1.5 * kCell;
    if (straight) return fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", a.x, a.y, b.x, b.y);
    const double bend = std::min(0.4 * kCell, length / 4) / length;
    return fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", a.x, a.y,
                       (a.x + b.x) / 2 - 2 * bend * dy, (a.y + b.y) / 2 - 2 * bend * std::abs(dx),
                       b.x, b.y);
  }

  /// A router of one end goes by the name of that.
  std::string shown(std::uint32_t node) const {
    return network_.name_of(network_.map().empty() ? node : node % network_.ends());
  }

  std::string circle(std::uint32_t node) const {
    const Network::Place at = at_[node];
    std::uint32_t number = node;
    for (const Network::Level& level : network_.levels())
      if (node >= level.first) number = node - level.first;
    return fmt::format(
        "<g class=\"node\"><title>{}</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/><text "
        "x=\"{:.1f}\" y=\"{:.1f}\">{}</text></g>\n",
        network_.name_of(node), at.x, at.y, kRadius, at.x, at.y + 4, number);
  }

  const Network& network_;
  const ReplayResult* const result_;
  std::vector<Network::Place> at_;  ///< By node.
  double most_ = 0;
};

}  // namespace

Result<std::string> network_svg(const Network& network, const ReplayResult* result) {
  if (network.nodes() > kMostDrawn)
    return error(Code::invalid_argument, "{} has {} nodes; at most {} are drawn", network.text(),
                 network.nodes(), kMostDrawn);
  return NetworkPicture(network, result).run();
}

}  // namespace anyccl::cli
