#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "draw/movement.hpp"
#include "explore/packed.hpp"
#include "simulate/machine.hpp"
#include "simulate/network.hpp"

namespace anyccl::cli {

/// The texts and networks that the variants of all algorithms share.
struct ExplorerPools {
  Pool ranks;     ///< Sets of ranks: in hexadecimal, bit r for rank r.
  Pool names;     ///< Those of actions.
  Pool clocks;    ///< Packed: the times at which something happens, in ns, in their order.
  Pool patterns;  ///< Packed: what happens at which of them.
};

/// A network, and for each placement the end of each rank.
struct PlacedNetwork {
  Network network;
  std::vector<std::vector<std::uint32_t>> places;
};

/// One algorithm in one shape: what page/data.js reads.
nlohmann::ordered_json movement_json(const Movement& movement, std::uint32_t chunks_per_block,
                                     ExplorerPools& pools);

/// When its messages travel and its ranks wait, packed: a pattern and a clock for each network,
/// within it each placement, and within that each size. Errors: those of RankPrograms::of() and
/// replay(); internal for a message that only one of both, movement and replay, has.
Result<std::string> times_of(const Algorithm& algorithm, const Movement& movement,
                             const std::vector<PlacedNetwork>& networks,
                             std::span<const std::size_t> bytes, const Machine& machine,
                             ExplorerPools& pools);

/// A network with its drawing and, of each placement, the route of each pair of ranks.
nlohmann::ordered_json network_json(const PlacedNetwork& placed);

}  // namespace anyccl::cli
