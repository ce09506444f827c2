// Dragonfly: Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology",
// ISCA 2008. Dragonfly+: Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters",
// HiPINEB 2017. Both with one cable between each two groups, and routes of the fewest hops.

#include <algorithm>

#include "base/error.hpp"
#include "simulate/networks/kinds.hpp"

namespace anyccl::cli {

namespace {

/// Which cable of a group leads to another one, of which there is one for each.
std::uint32_t cable_to(std::uint32_t group, std::uint32_t other) {
  return other < group ? other : other - 1;
}

struct Dragonfly {
  std::uint32_t p, a, h;
  std::uint32_t routers = 0;  ///< The first one.

  /// The router of `group` with the cable to another group.
  std::uint32_t gate(std::uint32_t group, std::uint32_t other) const {
    return routers + group * a + cable_to(group, other) / h;
  }
  void path(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) const {
    const std::uint32_t first = routers + from / p, last = routers + to / p;
    const std::uint32_t group = from / p / a, last_group = to / p / a;
    nodes.push_back(from);
    const auto visit = [&nodes](std::uint32_t router) {
      if (nodes.back() != router) nodes.push_back(router);
    };
    visit(first);
    if (group != last_group) {
      visit(gate(group, last_group));
      visit(gate(last_group, group));
    }
    visit(last);
    nodes.push_back(to);
  }
};

struct DragonflyPlus {
  std::uint32_t half;  ///< radix / 2
  std::uint32_t leaves = 0, spines = 0;

  std::uint32_t gate(std::uint32_t group, std::uint32_t other) const {
    return spines + group * half + cable_to(group, other) / half;
  }
  void path(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) const {
    const std::uint32_t leaf = from / half, last_leaf = to / half;
    const std::uint32_t group = leaf / half, last_group = last_leaf / half;
    nodes.insert(nodes.end(), {from, leaves + leaf});
    if (group != last_group) {
      nodes.insert(nodes.end(),
                   {gate(group, last_group), gate(last_group, group), leaves + last_leaf});
    } else if (leaf != last_leaf) {
      nodes.insert(nodes.end(), {spines + group * half + to % half, leaves + last_leaf});
    }
    nodes.push_back(to);
  }
};

/// Cables between each two groups, whose ends `gate(group, other)` names.
template <typename Shape>
void connect_groups(NetworkWriter& writer, const Shape& shape, std::uint32_t groups,
                    std::uint32_t global) {
  for (std::uint32_t g = 0; g < groups; ++g)
    for (std::uint32_t other = g + 1; other < groups; ++other)
      writer.add_cable(shape.gate(g, other), shape.gate(other, g), global);
}

template <typename Shape>
Network finish(NetworkWriter writer, const Shape& shape) {
  return std::move(writer).finish(
      [shape](std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) {
        shape.path(from, to, nodes);
      });
}

}  // namespace

Result<Network> make_dragonfly(NetworkParams& params, std::uint32_t ranks) {
  std::uint32_t balanced = 1;  // a = 2p = 2h, as the authors advise
  while (2 * balanced * balanced * (2 * balanced * balanced + 1) < ranks) ++balanced;
  const std::uint32_t p = params.take_number("p", balanced, 1, 64);
  const std::uint32_t a = params.take_number("a", std::min(2 * p, 64U), 1, 64),
                      h = params.take_number("h", p, 1, 64);
  const std::uint32_t most = std::min(a * h + 1, std::max(1U, kMostEnds / (a * p)));
  const std::uint32_t groups = params.take_number("groups", most, 1, most);
  ANYCCL_CHECK(params.status());
  NetworkWriter writer(params.kind(), params.text());
  writer.add_level("rank", groups * a * p);
  const Dragonfly shape{p, a, h, writer.add_level("router", groups * a)};
  const std::uint32_t host = writer.add_link_class("host"), local = writer.add_link_class("local"),
                      global = writer.add_link_class("global");
  for (std::uint32_t r = 0; r < groups * a; ++r) {
    for (std::uint32_t i = 0; i < p; ++i) writer.add_cable(r * p + i, shape.routers + r, host);
    for (std::uint32_t other = r + 1; other < (r / a + 1) * a; ++other)
      writer.add_cable(shape.routers + r, shape.routers + other, local);
  }
  connect_groups(writer, shape, groups, global);
  return finish(std::move(writer), shape);
}

Result<Network> make_dragonfly_plus(NetworkParams& params, std::uint32_t ranks) {
  std::uint32_t enough = 2;
  while (enough * enough / 4 * (enough * enough / 4 + 1) < ranks) enough += 2;
  const std::uint32_t radix = params.take_number("radix", enough, 2, 64), half = radix / 2;
  const std::uint32_t most = half * half + 1;
  const std::uint32_t groups = params.take_number("groups", most, 1, most);
  ANYCCL_CHECK(params.status());
  if (radix % 2 != 0)
    return error(Code::invalid_argument, "{}: radix={} is not an even number of ports",
                 params.kind(), radix);
  NetworkWriter writer(params.kind(), params.text());
  writer.add_level("rank", groups * half * half);
  DragonflyPlus shape{half};
  shape.leaves = writer.add_level("leaf switch", groups * half);
  shape.spines = writer.add_level("spine switch", groups * half);
  const std::uint32_t host = writer.add_link_class("host"), local = writer.add_link_class("local"),
                      global = writer.add_link_class("global");
  for (std::uint32_t leaf = 0; leaf < groups * half; ++leaf)
    for (std::uint32_t i = 0; i < half; ++i) {
      writer.add_cable(leaf * half + i, shape.leaves + leaf, host);
      writer.add_cable(shape.leaves + leaf, shape.spines + leaf / half * half + i, local);
    }
  connect_groups(writer, shape, groups, global);
  return finish(std::move(writer), shape);
}

}  // namespace anyccl::cli
