#include "simulate/link_loads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "draw/table.hpp"

namespace anyccl::cli {

namespace {

struct ClassLoad {
  std::size_t links = 0, used = 0;
  double bytes = 0, most = 0;
};

/// The share of the collective's time that the link needs for what it carried.
double busy_share(const Network& network, const Machine& machine, const ReplayResult& result,
                  std::size_t link) {
  const double own = network.classes()[network.links()[link].link_class].bytes_per_s;
  const double seconds = result.link_bytes[link] / (own > 0 ? own : machine.bytes_per_s);
  return result.seconds > 0 ? seconds / result.seconds : 0;
}

}  // namespace

std::string link_loads(const Network& network, const Machine& machine, const ReplayResult& result) {
  std::vector<ClassLoad> loads(network.classes().size());
  for (std::size_t l = 0; l < network.links().size(); ++l) {
    ClassLoad& load = loads[network.links()[l].link_class];
    ++load.links;
    load.used += result.link_bytes[l] > 0 ? 1 : 0;
    load.bytes += result.link_bytes[l];
    load.most = std::max(load.most, result.link_bytes[l]);
  }
  std::vector<Line> lines = {{"links", "number", "used", "MB in the mean", "MB at most"}};
  for (std::size_t c = 0; c < loads.size(); ++c)
    lines.push_back(
        {network.classes()[c].name, fmt::format("{}", loads[c].links),
         fmt::format("{}", loads[c].used),
         fmt::format("{:.3f}", loads[c].bytes / 1e6 /
                                   static_cast<double>(std::max<std::size_t>(1, loads[c].links))),
         fmt::format("{:.3f}", loads[c].most / 1e6)});
  std::vector<std::size_t> order(network.links().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto shown = static_cast<std::ptrdiff_t>(std::min<std::size_t>(5, order.size()));
  std::partial_sort(
      order.begin(), order.begin() + shown, order.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(-result.link_bytes[a], a) < std::pair(-result.link_bytes[b], b);
      });
  std::vector<Line> busiest = {{"busiest links", "MB", "of the time"}};
  for (auto l = order.begin(); l != order.begin() + shown; ++l)
    busiest.push_back({network.name_of(network.links()[*l]),
                       fmt::format("{:.3f}", result.link_bytes[*l] / 1e6),
                       fmt::format("{:.0f} %", 100 * busy_share(network, machine, result, *l))});
  return table(lines) + "\n" + table(busiest);
}

std::string network_text(const Network& network) {
  std::vector<Line> nodes = {{"nodes", "number"}}, cables = {{"cables", "number"}};
  for (const Network::Level& level : network.levels())
    nodes.push_back({level.name, fmt::format("{}", level.count)});
  for (std::uint32_t c = 0; c < network.classes().size(); ++c) {
    const auto links = std::count_if(network.links().begin(), network.links().end(),
                                     [c](const Network::Link& l) { return l.link_class == c; });
    cables.push_back({network.classes()[c].name, fmt::format("{}", links / 2)});
  }
  return network.text() + "\n\n" + table(nodes) + "\n" + table(cables);
}

}  // namespace anyccl::cli
