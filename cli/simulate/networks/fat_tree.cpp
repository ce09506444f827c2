// Fat trees of switches with k ports: Al-Fares, Loukissas and Vahdat, "A scalable, commodity data
// center network architecture", SIGCOMM 2008. The way up follows from the number of the receiver,
// so messages to different ends of an edge switch come by different ways.

#include "base/error.hpp"
#include "simulate/networks/kinds.hpp"

namespace anyccl::cli {

namespace {

/// The least even k whose tree has that many ends.
std::uint32_t ports_for(std::uint32_t ranks) {
  std::uint32_t k = 2;
  while (k * k * k / 4 < ranks) k += 2;
  return k;
}

struct FatTree {
  std::uint32_t half;  ///< k / 2: of each switch, the ports that go down.
  std::uint32_t up;    ///< Ports of an edge switch that go up; aggregation switches of a pod.
  std::uint32_t edges, aggregations, cores;  ///< First nodes.

  void path(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) const {
    const std::uint32_t edge = from / half, last_edge = to / half;
    const std::uint32_t pod = edge / half, last_pod = last_edge / half;
    const std::uint32_t column = to % up, core = column * half + to / up % half;
    nodes.insert(nodes.end(), {from, edges + edge});
    if (edge != last_edge) {
      nodes.push_back(aggregations + pod * up + column);
      if (pod != last_pod)
        nodes.insert(nodes.end(), {cores + core, aggregations + last_pod * up + column});
      nodes.push_back(edges + last_edge);
    }
    nodes.push_back(to);
  }
};

}  // namespace

Result<Network> make_fat_tree(NetworkParams& params, std::uint32_t ranks) {
  const std::uint32_t k = params.take_number("k", ports_for(ranks), 2, 128);
  const std::uint32_t taper = params.take_number("taper", 1, 1, 64);
  ANYCCL_CHECK(params.status());
  const std::uint32_t half = k / 2;
  if (k % 2 != 0)
    return error(Code::invalid_argument, "{}: k={} is not an even number of ports", params.kind(),
                 k);
  if (half % taper != 0)
    return error(Code::invalid_argument,
                 "{}: taper={} does not divide the {} cables above an edge switch", params.kind(),
                 taper, half);
  NetworkWriter writer(params.kind(), params.text());
  writer.add_level("rank", k * half * half);
  FatTree tree{half, half / taper, 0, 0, 0};
  tree.edges = writer.add_level("edge switch", k * half);
  tree.aggregations = writer.add_level("aggregation switch", k * tree.up);
  tree.cores = writer.add_level("core switch", tree.up * half);
  const std::uint32_t host = writer.add_link_class("host"), edge = writer.add_link_class("edge"),
                      core = writer.add_link_class("core");
  for (std::uint32_t e = 0; e < k * half; ++e) {
    for (std::uint32_t i = 0; i < half; ++i) writer.add_cable(e * half + i, tree.edges + e, host);
    for (std::uint32_t u = 0; u < tree.up; ++u)
      writer.add_cable(tree.edges + e, tree.aggregations + e / half * tree.up + u, edge);
  }
  for (std::uint32_t a = 0; a < k * tree.up; ++a)
    for (std::uint32_t i = 0; i < half; ++i)
      writer.add_cable(tree.aggregations + a, tree.cores + a % tree.up * half + i, core);
  return std::move(writer).finish(
      [tree](std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) {
        tree.path(from, to, nodes);
      });
}

}  // namespace anyccl::cli
