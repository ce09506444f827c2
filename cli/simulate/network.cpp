#include "simulate/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace anyccl::cli {

std::string Network::name_of(std::uint32_t node) const {
  const auto level = std::find_if(levels_.begin(), levels_.end(),
                                  [node](const Level& l) { return node < l.first + l.count; });
  return level->count == 1 ? level->name : fmt::format("{} {}", level->name, node - level->first);
}

std::string Network::name_of(const Link& link) const {
  return fmt::format("{} > {}", name_of(link.from), name_of(link.to));
}

std::uint32_t Network::link_between(std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t first = first_link_[from], end = first_link_[from + 1];
  // Where a node has a link to each of a row of nodes, its place follows from the number.
  const std::uint32_t guess = first + (to - links_[first].to);
  if (guess >= first && guess < end && links_[guess].to == to) return guess;
  const auto at = [this](std::uint32_t l) {
    return links_.begin() + static_cast<std::ptrdiff_t>(l);
  };
  const auto found = std::lower_bound(
      at(first), at(end), to, [](const Link& l, std::uint32_t node) { return l.to < node; });
  return static_cast<std::uint32_t>(found - links_.begin());
}

void Network::route(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& way) const {
  const std::size_t first = way.size();
  path_(from, to, way);
  for (std::size_t i = first; i + 1 < way.size(); ++i) way[i] = link_between(way[i], way[i + 1]);
  way.pop_back();
}

NetworkWriter::NetworkWriter(std::string kind, std::string text) {
  network_.kind_ = std::move(kind);
  network_.text_ = std::move(text);
}

std::uint32_t NetworkWriter::add_level(std::string_view name, std::uint32_t count) {
  const std::uint32_t first = network_.levels_.empty() ? 0 : network_.nodes();
  network_.levels_.push_back({std::string(name), first, count});
  return first;
}

std::uint32_t NetworkWriter::add_link_class(std::string_view name, double bytes_per_s) {
  network_.classes_.push_back({std::string(name), bytes_per_s});
  return static_cast<std::uint32_t>(network_.classes_.size()) - 1;
}

void NetworkWriter::add_cable(std::uint32_t a, std::uint32_t b, std::uint32_t link_class) {
  network_.links_.push_back({a, b, link_class});
  network_.links_.push_back({b, a, link_class});
}

Network NetworkWriter::finish(Network::Path path) && {
  auto& links = network_.links_;
  std::sort(links.begin(), links.end(), [](const Network::Link& a, const Network::Link& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
  auto& first = network_.first_link_;
  first.assign(network_.nodes() + 1, 0);
  for (const Network::Link& link : links) ++first[link.from + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  network_.path_ = std::move(path);
  return std::move(network_);
}

}  // namespace anyccl::cli
