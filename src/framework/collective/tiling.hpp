#pragma once
// The size of tiles is chosen here, by the room that transports have. PlanCache and `anyccl
// simulate` ask.

#include <cstddef>
#include <cstdint>

#include "framework/collective/routed_plan.hpp"

namespace anyccl {

/// The room that the tiles of a call have.
struct TilingRoom {
  std::uint32_t slots = 0;             ///< A bank's.
  std::size_t ring_bytes = 0;          ///< The size of a rank's staging ring.
  std::uint32_t chunks_per_block = 1;  ///< Into which a tile is divided; 1 for v-forms.
  bool network = false;                ///< Some pair of ranks talks over a network.
  std::size_t publication_bytes = 0;   ///< The most that a publication has; 0: any.
};

struct Tiling {
  std::size_t tile_bytes = 0;
  std::uint32_t lanes = 1;  ///< Tiles in flight.
};

/// How many publications a tile has at the rank that has most; at least 1.
std::uint32_t most_publications(const Plan& plan);
/// The bytes of the largest publication of a tile.
std::size_t largest_publication(const Plan& plan, const Geometry& geometry);

/// Tiles of a vector or block in queues of devices: each costs some microseconds, and nothing goes
/// on before the first is there.
std::size_t tile_in_queues(std::size_t bytes);

/// Tiles of at most `wanted_tile_bytes` that fit the ring and the slots, and how many of them are
/// in flight: everything in flight, and the tile before it, must fit the ring. The same on all
/// ranks.
Tiling choose_tiling(const RoutedPlan& routed, const TilingRoom& room,
                     std::size_t wanted_tile_bytes);

}  // namespace anyccl
