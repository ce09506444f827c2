#include "simulate/network_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace anyccl::cli {

namespace {

constexpr double kCell = 44, kLevel = 110;

}  // namespace

NetworkDrawing::NetworkDrawing(const Network& network, double left, double top)
    : network_(network), left_(left + kRadius), top_(top + kRadius), at_(network.nodes()) {
  if (has_map())
    place_map();
  else
    place_levels();
}

Network::Place NetworkDrawing::end() const {
  Network::Place end;
  for (const Network::Place& place : at_) {
    end.x = std::max(end.x, place.x + kRadius);
    end.y = std::max(end.y, place.y + kRadius);
  }
  return end;
}

bool NetworkDrawing::is_hidden(const Network::Link& link) const {
  return has_map() && std::min(link.from, link.to) < network_.ends();
}

std::string NetworkDrawing::path(const Network::Link& link) const {
  const Network::Place a = at_[link.from], b = at_[link.to];
  const double dx = b.x - a.x, dy = b.y - a.y, length = std::hypot(dx, dy);
  const bool straight = (std::abs(dx) > 1 && std::abs(dy) > 1) || length < 1.5 * kCell;
  if (straight) return fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", a.x, a.y, b.x, b.y);
  const double bend = std::min(0.4 * kCell, length / 4) / length;
  return fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", a.x, a.y,
                     (a.x + b.x) / 2 - 2 * bend * dy, (a.y + b.y) / 2 - 2 * bend * std::abs(dx),
                     b.x, b.y);
}

std::size_t NetworkDrawing::back(std::size_t link) const {
  const auto& links = network_.links();
  const auto found = std::find_if(links.begin(), links.end(), [&](const Network::Link& l) {
    return l.from == links[link].to && l.to == links[link].from;
  });
  return static_cast<std::size_t>(found - links.begin());
}

void NetworkDrawing::place_map() {
  const std::uint32_t ends = network_.ends();
  for (std::uint32_t i = 0; i < ends; ++i)
    at_[i] =
        at_[ends + i] = {left_ + kCell * network_.map()[i].x, top_ + kCell * network_.map()[i].y};
}

/// Ends at the bottom, each level above the one before it, as wide as the widest.
void NetworkDrawing::place_levels() {
  std::uint32_t widest = 0;
  for (const Network::Level& level : network_.levels()) widest = std::max(widest, level.count);
  double y = top_ + kLevel * static_cast<double>(network_.levels().size() - 1);
  for (const Network::Level& level : network_.levels()) {
    const double cell = kCell * widest / level.count;
    for (std::uint32_t i = 0; i < level.count; ++i)
      at_[level.first + i] = {left_ + cell * (i + 0.5), y};
    y -= kLevel;
  }
}

}  // namespace anyccl::cli
