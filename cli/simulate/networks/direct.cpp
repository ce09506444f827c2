// Networks without switches that have no end, and the one with a single switch. Routes go along one
// dimension after the other, the shorter way round.

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.hpp"
#include "simulate/networks/kinds.hpp"

namespace anyccl::cli {

namespace {

/// Ends and their routers.
struct Routers {
  NetworkWriter writer;
  std::uint32_t count, first, cables;

  Routers(const NetworkParams& params, std::uint32_t n)
      : writer(params.kind(), params.text()),
        count(n),
        first((writer.add_level("rank", n), writer.add_level("router", n))),
        cables((writer.add_link_class("port"), writer.add_link_class("cable"))) {
    for (std::uint32_t i = 0; i < n; ++i) writer.add_cable(i, first + i, 0);
  }
  void connect(std::uint32_t a, std::uint32_t b) { writer.add_cable(first + a, first + b, cables); }
};

/// The path between ends, if `step` gives the router after `at` on the way to `to`.
template <typename Step>
Network finish(Routers routers, Step step) {
  const std::uint32_t first = routers.first;
  return std::move(routers.writer)
      .finish(
          [first, step](std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) {
            nodes.push_back(from);
            nodes.push_back(first + from);
            for (std::uint32_t at = from; at != to; nodes.push_back(first + at)) at = step(at, to);
            nodes.push_back(to);
          });
}

/// Evenly around a circle, from the top.
std::vector<Network::Place> circle_map(std::uint32_t n) {
  std::vector<Network::Place> places;
  const double radius = std::max(1.0, n / (2 * std::numbers::pi));
  for (std::uint32_t i = 0; i < n; ++i) {
    const double turn = 2 * std::numbers::pi * i / n;
    places.push_back({radius * (1 + std::sin(turn)), radius * (1 - std::cos(turn))});
  }
  return places;
}

/// The first dimension to the right, the second one down, and all others as blocks to the right.
std::vector<Network::Place> grid_map(const std::vector<std::uint32_t>& dims, std::uint32_t ends) {
  std::vector<Network::Place> places;
  const std::uint32_t width = dims[0], height = dims.size() > 1 ? dims[1] : 1;
  for (std::uint32_t i = 0; i < ends; ++i) {
    const std::uint32_t block = i / (width * height);
    places.push_back({static_cast<double>(block * (width + 1) + i % width),
                      static_cast<double>(i / width % height)});
  }
  return places;
}

/// One level below the other, each parent above the middle of its children.
std::vector<Network::Place> tree_map(std::uint32_t arity, std::uint32_t n) {
  std::vector<Network::Place> places(n);
  std::vector<std::uint32_t> leaves(n), before(n);  // below each, and to the left of each
  const auto child = [&](std::uint32_t i, std::uint32_t k) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{i} * arity + 1 + k, n));
  };
  for (std::uint32_t i = n - 1; i > 0; --i) {
    leaves[i] = std::max(1U, leaves[i]);
    leaves[(i - 1) / arity] += leaves[i];
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t left = before[i];
    for (std::uint32_t c = child(i, 0); c < child(i, arity); ++c) {
      places[c].y = places[i].y + 1;
      before[c] = std::exchange(left, left + leaves[c]);
    }
  }
  for (std::uint32_t i = n; i-- > 0;) {
    const bool is_leaf = child(i, 0) == n;
    places[i].x = is_leaf ? before[i] : (places[child(i, 0)].x + places[child(i, arity) - 1].x) / 2;
  }
  return places;
}

/// The place after `at` on the shorter way to `to` around a circle of n.
std::uint32_t next_around(std::uint32_t at, std::uint32_t to, std::uint32_t n) {
  const std::uint32_t forward = to >= at ? to - at : to + n - at;
  return (2 * forward <= n ? at + 1 : at + n - 1) % n;
}

/// Makes the torus of `dims`: one dimension is a ring, and dimensions of 2 are a hypercube.
Network circles(const NetworkParams& params, const std::vector<std::uint32_t>& dims) {
  std::uint32_t ends = 1;
  for (const std::uint32_t dim : dims) ends *= dim;
  Routers routers(params, ends);
  std::uint32_t stride = 1;
  for (const std::uint32_t dim : dims) {
    for (std::uint32_t i = 0; i < ends; ++i) {
      const std::uint32_t place = i / stride % dim;
      const bool last = place + 1 == dim;
      if (dim > 1 && !(dim == 2 && last))
        routers.connect(i, last ? i - place * stride : i + stride);
    }
    stride *= dim;
  }
  const bool bent = dims.size() == 1 || (dims.size() > 3 && dims[0] == 2);
  routers.writer.map(bent ? circle_map(ends) : grid_map(dims, ends));
  return finish(std::move(routers), [dims](std::uint32_t at, std::uint32_t to) {
    std::uint32_t step = 1;
    for (const std::uint32_t dim : dims) {
      const std::uint32_t a = at / step % dim, b = to / step % dim;
      if (a != b) return at + next_around(a, b, dim) * step - a * step;
      step *= dim;
    }
    return to;
  });
}

/// Three dimensions, as equal as n allows.
std::vector<std::uint32_t> cube(std::uint32_t n) {
  const auto largest_divisor = [](std::uint32_t of, std::uint32_t power) {
    std::uint32_t best = 1;
    for (std::uint32_t d = 1; d <= of; ++d) {
      std::uint64_t product = 1;
      for (std::uint32_t i = 0; i < power; ++i) product *= d;
      if (product > of) break;
      if (of % d == 0) best = d;
    }
    return best;
  };
  const std::uint32_t z = largest_divisor(n, 3), y = largest_divisor(n / z, 2);
  return {n / z / y, y, z};
}

}  // namespace

Result<Network> make_flat(NetworkParams& params, std::uint32_t ranks) {
  const std::uint32_t n = params.take_number("ends", ranks, 1, kMostEnds);
  ANYCCL_CHECK(params.status());
  NetworkWriter writer(params.kind(), params.text());
  writer.add_level("rank", n);
  const std::uint32_t hub = writer.add_level("switch", 1), cables = writer.add_link_class("cable");
  for (std::uint32_t i = 0; i < n; ++i) writer.add_cable(i, hub, cables);
  return std::move(writer).finish(
      [hub](std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) {
        nodes.insert(nodes.end(), {from, hub, to});
      });
}

Result<Network> make_ring(NetworkParams& params, std::uint32_t ranks) {
  const std::uint32_t n = params.take_number("ends", ranks, 1, kMostEnds);
  ANYCCL_CHECK(params.status());
  return circles(params, {n});
}

Result<Network> make_torus(NetworkParams& params, std::uint32_t ranks) {
  const auto dims = params.take_dims("dims", cube(ranks));
  ANYCCL_CHECK(params.status());
  return circles(params, dims);
}

Result<Network> make_hypercube(NetworkParams& params, std::uint32_t ranks) {
  const auto needed = static_cast<std::uint32_t>(std::bit_width(ranks - 1));
  const std::uint32_t dims = params.take_number("dims", std::max(needed, 1U), 1, 20);
  ANYCCL_CHECK(params.status());
  return circles(params, std::vector<std::uint32_t>(dims, 2));
}

Result<Network> make_tree(NetworkParams& params, std::uint32_t ranks) {
  const std::uint32_t n = params.take_number("ends", ranks, 1, kMostEnds);
  const std::uint32_t arity = params.take_number("arity", 2, 1, kMostEnds);
  ANYCCL_CHECK(params.status());
  Routers routers(params, n);
  for (std::uint32_t i = 1; i < n; ++i) routers.connect((i - 1) / arity, i);
  routers.writer.map(tree_map(arity, n));
  return finish(std::move(routers), [arity](std::uint32_t at, std::uint32_t to) {
    // Below `at`, if a number of parents up from `to` leads there; a child has the greater number.
    std::uint32_t child = to;
    while (child > at && (child - 1) / arity != at) child = (child - 1) / arity;
    return child > at ? child : (at - 1) / arity;
  });
}

}  // namespace anyccl::cli
