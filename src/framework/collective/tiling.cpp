#include "framework/collective/tiling.hpp"

#include <algorithm>
#include <cmath>

namespace anyccl {
namespace {

constexpr std::size_t kMinTile = 4096;
constexpr std::uint32_t kTilesInFlight = 2;
/// Over a network, where each tile is on its way for a round trip: docs/performance/hosts.md.
constexpr std::uint32_t kTilesInFlightOverNetwork = 8;
static_assert(kTilesInFlight <= kMostLanes && kTilesInFlightOverNetwork <= kMostLanes,
              "each tile in flight posts progress in a lane");

/// How many tiles are in flight where the slots suffice for so many and the ring for so many of the
/// size wanted.
std::uint32_t lanes_for(std::uint32_t by_slots, std::size_t by_ring, bool network) {
  by_slots = std::max(1U, by_slots);  // one tile may need each slot more than once
  const std::uint32_t usual = std::min(by_slots, kTilesInFlight);
  if (!network || by_ring <= usual + 1) return usual;  // rather few tiles than small ones
  return static_cast<std::uint32_t>(
      std::min<std::size_t>({by_slots, by_ring - 1, kTilesInFlightOverNetwork}));
}

}  // namespace

std::uint32_t most_publications(const Plan& plan) {
  return std::max(1U, *std::max_element(plan.publications.begin(), plan.publications.end()));
}

std::size_t largest_publication(const Plan& plan, const Geometry& geometry) {
  std::size_t largest = 0;
  for (const std::vector<Origin>& publication : plan.published) {
    std::size_t bytes = 0;
    for (const Origin origin : publication) bytes += geometry.bytes(0, origin);
    largest = std::max(largest, bytes);
  }
  return largest;
}

std::size_t tile_in_queues(std::size_t bytes) {
  const double balanced = std::sqrt(static_cast<double>(bytes) * 65536);
  return std::clamp<std::size_t>(static_cast<std::size_t>(balanced), 512U << 10, 2U << 20);
}

Tiling choose_tiling(const RoutedPlan& routed, const TilingRoom& room,
                     std::size_t wanted_tile_bytes) {
  const std::size_t published = std::max<std::size_t>(1, routed.most_published);
  const std::size_t bytes = room.ring_bytes * room.chunks_per_block / published;
  Tiling tiling;
  tiling.lanes = lanes_for(room.slots / most_publications(routed.plan), bytes / wanted_tile_bytes,
                           room.network);
  std::size_t most = bytes / (tiling.lanes + 1);
  if (room.publication_bytes > 0)
    most = std::min(most, room.publication_bytes * room.chunks_per_block /
                              std::max<std::size_t>(1, routed.most_together));
  tiling.tile_bytes = std::max(kMinTile, std::min(wanted_tile_bytes, most) / kMinTile * kMinTile);
  return tiling;
}

}  // namespace anyccl
