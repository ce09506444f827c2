#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "explore/explorer.hpp"
#include "explore/recorded.hpp"
#include "explore/variants.hpp"
#include "simulate/link_loads.hpp"
#include "simulate/read_network.hpp"

namespace anyccl::cli {

namespace {

using Json = nlohmann::ordered_json;

class ExplorerWriter {
 public:
  explicit ExplorerWriter(const ExplorerSetting& setting) : setting_(setting) {}

  Result<std::string> run() {
    Json algorithms = Json::array();
    for (const Algorithm* algorithm : setting_.algorithms) {
      ANYCCL_TRY(Json variants, variants_of(*algorithm));
      if (variants.empty()) continue;
      const Contract contract({algorithm->collective, 2}, 1);
      algorithms.push_back({{"id", id(*algorithm)},
                            {"rooted", is_rooted(algorithm->collective)},
                            {"combines", name(contract.combine())},
                            {"variants", std::move(variants)}});
    }
    if (algorithms.empty())
      return error(Code::invalid_argument, "none of these algorithms supports {} ranks",
                   fmt::join(setting_.ranks, " or "));
    const Json data = {{"version", ANYCCL_VERSION_TEXT},
                       {"machine", machine()},
                       {"bytes", setting_.bytes},
                       {"topologies", topologies()},
                       {"placements", setting_.placements},
                       {"networks", networks_json()},
                       {"ranks", pools_.ranks.all()},
                       {"names", pools_.names.all()},
                       {"clocks", pools_.clocks.all()},
                       {"patterns", pools_.patterns.all()},
                       {"algorithms", std::move(algorithms)},
                       {"recorded", recorded_json(setting_.traces)}};
    return data.dump();
  }

 private:
  static const char* name(Combine combine) {
    return combine == Combine::none ? "none" : combine == Combine::sum ? "sum" : "gathers";
  }

  /// The machine's name and constants, in the units of their keys.
  Json machine() const {
    const Machine& m = setting_.machine;
    return {{"name", setting_.machine_name},
            {"alphaUs", m.alpha_s * 1e6},
            {"hopUs", m.hop_s * 1e6},
            {"overheadUs", m.overhead_s * 1e6},
            {"GBps", m.bytes_per_s / 1e9},
            {"reduceGBps", m.gamma_s_per_byte > 0 ? 1e-9 / m.gamma_s_per_byte : 0}};
  }

  /// The names of the topologies.
  Json topologies() const {
    Json names = Json::array();
    for (const ExplorerTopology& topology : setting_.topologies) names.push_back(topology.name);
    return names;
  }

  /// The shapes of an algorithm that differ in what they show; those that it does not support are
  /// left out.
  Result<Json> variants_of(const Algorithm& algorithm) {
    Json variants = Json::array();
    for (const int ranks : setting_.ranks) {
      std::set<int> roots = {0};
      if (is_rooted(algorithm.collective))
        roots.insert(setting_.roots.begin(), setting_.roots.end());
      for (const int root : roots)
        if (root < ranks)
          ANYCCL_CHECK(
              add_variants({algorithm.collective, ranks, Rank{root}}, algorithm, variants));
    }
    return variants;
  }

  /// On one host, and on several if that makes a difference.
  Status add_variants(const Shape& shape, const Algorithm& algorithm, Json& variants) {
    std::set<std::string> seen;
    std::vector<int> hosts = setting_.ranks_per_host;
    hosts.insert(hosts.begin(), 0);
    for (const int ranks_per_host : hosts) {
      Shape on_hosts = shape;
      if (ranks_per_host >= shape.size) continue;
      for (int r = 0; ranks_per_host > 0 && r < shape.size; ++r)
        on_hosts.host_of.push_back(r / ranks_per_host);
      if (!algorithm.supports(on_hosts)) continue;
      ANYCCL_TRY(const Movement movement, movement_of(algorithm, on_hosts));
      const Contract contract = algorithm.build(on_hosts, Rank{0}).contract;
      Json variant =
          movement_json(movement, contract.has_bytes() ? contract.chunks_per_block() : 0, pools_);
      if (!seen.insert(variant.dump()).second) continue;
      variant["ranksPerHost"] = ranks_per_host;
      ANYCCL_TRY(const std::vector<PlacedNetwork>* networks, networks_of(shape.size));
      ANYCCL_TRY(variant["times"], times_of(algorithm, movement, *networks, setting_.bytes,
                                            setting_.machine, pools_));
      variants.push_back(std::move(variant));
    }
    return {};
  }

  /// The networks of all topologies for so many ranks.
  Result<const std::vector<PlacedNetwork>*> networks_of(int ranks) {
    const auto [at, added] = networks_.try_emplace(ranks);
    if (!added) return &at->second;
    for (const ExplorerTopology& topology : setting_.topologies) {
      ANYCCL_TRY(Network network,
                 read_network(topology.description, static_cast<std::uint32_t>(ranks)));
      if (network.nodes() > kMostDrawn)
        return error(Code::invalid_argument, "{} has {} nodes; at most {} are drawn",
                     network.text(), network.nodes(), kMostDrawn);
      std::vector<std::vector<std::uint32_t>> places;
      for (const std::string& placement : setting_.placements) {
        ANYCCL_TRY(std::vector<std::uint32_t> place,
                   read_placement(placement, static_cast<std::uint32_t>(ranks), network.ends()));
        places.push_back(std::move(place));
      }
      at->second.push_back({std::move(network), std::move(places)});
    }
    return &at->second;
  }

  /// Returns the networks that networks_of() has made so far, by the number of ranks.
  Json networks_json() const {
    Json all = Json::object();
    for (const auto& [ranks, networks] : networks_) {
      Json of = Json::array();
      for (const PlacedNetwork& placed : networks) of.push_back(network_json(placed));
      all[std::to_string(ranks)] = std::move(of);
    }
    return all;
  }

  const ExplorerSetting& setting_;
  ExplorerPools pools_;
  std::map<int, std::vector<PlacedNetwork>> networks_;
};

}  // namespace

Result<std::string> explorer_data(const ExplorerSetting& setting) {
  return ExplorerWriter(setting).run();
}

}  // namespace anyccl::cli
