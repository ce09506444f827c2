#include <cmath>

#include "explore/variants.hpp"
#include "simulate/network_drawing.hpp"

namespace anyccl::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMargin = 6;

Json levels(const Network& network) {
  Json all = Json::array();
  for (const Network::Level& level : network.levels())
    all.push_back({level.name, level.first, level.count});
  return all;
}

Json classes(const Network& network) {
  Json all = Json::array();
  for (const Network::LinkClass& c : network.classes())
    all.push_back({c.name, c.bytes_per_s / 1e9});
  return all;
}

/// Places of the nodes; those that are not drawn are where others are.
std::string places(const Network& network, const NetworkDrawing& drawing) {
  PackedNumbers to;
  for (std::uint32_t node = 0; node < network.nodes(); ++node) {
    const Network::Place at = drawing.at(node);
    to.add(static_cast<std::uint64_t>(std::lround(at.x)));
    to.add(static_cast<std::uint64_t>(std::lround(at.y)));
  }
  return to.text();
}

std::string links(const Network& network) {
  PackedNumbers to;
  for (const Network::Link& link : network.links())
    to.add(link.from).add(link.to).add(link.link_class);
  return to.text();
}

/// Each cable that is drawn: its link, the link back, and the path.
Json cables(const Network& network, const NetworkDrawing& drawing) {
  Json all = Json::array();
  const auto& links = network.links();
  for (std::size_t l = 0; l < links.size(); ++l)
    if (links[l].from < links[l].to && !drawing.is_hidden(links[l]))
      all.push_back({l, drawing.back(l), drawing.path(links[l])});
  return all;
}

/// From each rank to each other one: the number of links, and each.
std::string routes(const Network& network, const std::vector<std::uint32_t>& place) {
  PackedNumbers to;
  std::vector<std::uint32_t> way;
  for (const std::uint32_t from : place)
    for (const std::uint32_t end : place) {
      if (from == end) continue;
      way.clear();
      network.route(from, end, way);
      to.add(way.size());
      for (const std::uint32_t link : way) to.add(link);
    }
  return to.text();
}

std::string ends_of_ranks(const std::vector<std::uint32_t>& place) {
  PackedNumbers to;
  for (const std::uint32_t end : place) to.add(end);
  return to.text();
}

}  // namespace

Json network_json(const PlacedNetwork& placed) {
  const Network& network = placed.network;
  const NetworkDrawing drawing(network, kMargin, kMargin);
  Json placements = Json::array();
  for (const std::vector<std::uint32_t>& place : placed.places)
    placements.push_back({ends_of_ranks(place), routes(network, place)});
  const Network::Place end = drawing.end();
  return {{"text", network.text()},
          {"ends", network.ends()},
          {"routersAreEnds", !network.map().empty()},
          {"width", std::lround(end.x + kMargin)},
          {"height", std::lround(end.y + kMargin)},
          {"levels", levels(network)},
          {"classes", classes(network)},
          {"places", places(network, drawing)},
          {"links", links(network)},
          {"cables", cables(network, drawing)},
          {"placements", std::move(placements)}};
}

}  // namespace anyccl::cli
