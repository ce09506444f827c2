#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "draw/map_page.hpp"
#include "simulate/link_loads.hpp"
#include "simulate/network_drawing.hpp"

namespace anyccl::cli {

namespace {

constexpr double kRadius = NetworkDrawing::kRadius;
constexpr std::string_view kStyle =
    ".cable path{fill:none}.cable:hover path{stroke:#06C}"
    "circle,.node rect{fill:#FFF;stroke:#444}.node text{text-anchor:middle;font-size:10px}";

class NetworkPicture {
 public:
  NetworkPicture(const Network& network, const ReplayResult* result)
      : network_(network),
        result_(result),
        drawing_(network, MapPage::kMargin, MapPage::kTitle + 2 * kRadius) {
    for (std::size_t l = 0; l < network.links().size(); ++l)
      if (!drawing_.is_hidden(network.links()[l])) most_ = std::max(most_, carried(l));
  }

  std::string run() {
    std::string body;
    const auto& links = network_.links();
    for (std::size_t l = 0; l < links.size(); ++l)
      if (links[l].from < links[l].to && !drawing_.is_hidden(links[l])) body += cable(l);
    for (std::uint32_t node = 0; node < network_.nodes(); ++node)
      if (drawing_.is_drawn(node)) body += circle(node);
    std::string title = network_.text();
    if (most_ > 0) title += fmt::format("; the reddest carried {:.3f} MB", most_ / 1e6);
    const Network::Place end = drawing_.end();
    return to_svg(MapPage{title, kStyle, static_cast<int>(end.x + kRadius),
                          static_cast<int>(end.y + kRadius), std::move(body)});
  }

 private:
  double carried(std::size_t link) const {
    return result_ == nullptr ? 0 : result_->link_bytes[link];
  }

  std::string cable(std::size_t link) const {
    const Network::Link& l = network_.links()[link];
    const double there = carried(link), back_again = carried(drawing_.back(link));
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
        words, mix(0xBB, 0xCC), mix(0xBB, 0x00), mix(0xBB, 0x00), 1 + 3 * load, drawing_.path(l));
  }

  /// A router of one end goes by the name of that.
  std::string shown(std::uint32_t node) const {
    return network_.name_of(network_.map().empty() ? node : node % network_.ends());
  }

  std::string circle(std::uint32_t node) const {
    const Network::Place at = drawing_.at(node);
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
  const NetworkDrawing drawing_;
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
