#pragma once
// From a plan, which speaks of chunks and ranks, to what the executor runs, in three steps:
//
// 1. RoutedPlan: the plan and the transports that its publications travel over. No sizes.
// 2. Geometry: how a vector, or the blocks of a v-form, falls into tiles and chunks. No memory.
// 3. BoundPlan: offsets in bytes for one tile, relative to the tile, so that one BoundPlan serves
//    all tiles of a vector but the last.
//
// All three are the same for every call with the same arguments; only v-forms bind each tile anew.

#include <memory>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "algorithm/plan/plan.hpp"
#include "framework/call/call.hpp"
#include "platform/transport/publications.hpp"

namespace anyccl {

/// The most transports that one publication can travel over.
inline constexpr std::uint32_t kMostRoutes = 4;

/// A plan with the transports that its publications travel over. Knows no sizes; immutable.
struct RoutedPlan {
  struct Route {
    Publications* publications;  ///< The transport's.
    std::vector<Reader> readers;
  };
  RoutedPlan(const Algorithm* a, Plan p) : algorithm(a), plan(std::move(p)) {}

  const Algorithm* algorithm;
  Plan plan;
  std::vector<std::vector<Route>> routes;  ///< By publication; kMostRoutes at most.
  std::uint32_t most_published = 0;        ///< Chunks that the busiest rank publishes per tile.
  std::uint32_t most_together = 0;         ///< Chunks of the largest publication of any rank.
  std::uint32_t most_operands = 0;         ///< Operands of the step that has most.
};

/// One contiguous run of bytes that a step works on: offsets in bytes, own ones relative to the
/// tile.
struct Extent {
  std::uint32_t operand = 0;       ///< Which one, unless the step combines them all.
  std::uint32_t first_source = 0;  ///< In BoundPlan::sources: one per operand (combine), else one.
  std::size_t bytes = 0;
  std::size_t dst = 0;  ///< In the step's destination space.
  std::size_t out = 0;  ///< In the publication.
};

struct BoundStep {
  std::uint32_t first_extent = 0, extents = 0;
  std::uint32_t first_wanted = 0;     ///< BoundPlan::wanted, parallel to the step's operands.
  std::uint32_t first_out = 0;        ///< BoundPlan::outs, parallel to the publication's routes.
  std::size_t out_bytes = 0;          ///< The publication's.
  bool contiguous = false;            ///< The publication is contiguous in own memory,
  Space direct_space = Space::input;  ///< here,
  std::size_t direct = 0;             ///< at this offset.
};

/// A routed plan with sizes: everything about one tile that does not change from call to call.
struct BoundPlan {
  std::vector<BoundStep> steps;
  std::vector<Extent> extents;
  std::vector<std::size_t> sources;
  std::vector<Incoming> wanted;   ///< As in operation 0 and tile 0.
  std::vector<Outgoing> outs;     ///< In operation 0 and tile 0, too.
  std::vector<ReaderOf> readers;  ///< Those of `outs`, with the ticks of the first tile of a lane.
};

/// Where the chunks of one tile lie. The same formula on all ranks.
class Geometry {
 public:
  /// A vector of `bytes` in tiles of `tile_bytes`, each in equal chunks that are multiples of 64
  /// bytes except at the end. Of blocks, each is such a vector, one after the other.
  static Geometry of_vector(const Contract& contract, std::size_t bytes, std::size_t tile_bytes);
  /// v-forms: `tile_bytes` of each block at a time.
  static Geometry of_blocks(const Contract& contract, const Call& call, Rank me,
                            std::size_t tile_bytes);

  std::uint32_t tiles() const { return tiles_; }
  /// Bytes of the whole tile: two tiles with equal bytes bind alike (vectors only).
  std::size_t tile_bytes(std::uint32_t tile) const;
  std::size_t tile_begin(std::uint32_t tile) const {
    return varies_ ? 0 : std::size_t{tile} * tile_bytes_;
  }
  std::size_t bytes(std::uint32_t tile, Origin origin) const;
  /// Offset of a chunk of `space`, relative to tile_begin().
  std::size_t offset(std::uint32_t tile, const Schedule& schedule, Space space,
                     std::uint32_t chunk) const;
  /// Bytes that every scratch chunk gets.
  std::size_t scratch_chunk() const { return scratch_chunk_; }
  /// Whether it is of a v-form, whose blocks differ in size.
  bool varies() const { return varies_; }
  /// Whether it is of a v-form whose sizes some ranks do not know.
  bool sized() const { return sized_; }
  /// The bytes of the whole block of a v-form that belongs to this origin.
  std::uint64_t total(Origin origin) const;

 private:
  bool varies_ = false, sized_ = false, pairs_ = false;
  std::uint32_t chunks_per_block_ = 1, tiles_ = 1;
  std::size_t bytes_ = 0, tile_bytes_ = 0, scratch_chunk_ = 0;
  std::uint32_t size_ = 0, me_ = 0;
  std::size_t element_ = 1, own_count_ = 0;
  const std::size_t *send_counts_ = nullptr, *send_displs_ = nullptr;  // of sides that have blocks
  const std::size_t *recv_counts_ = nullptr, *recv_displs_ = nullptr;
};

/// The facts that all publications of a call share, on all ranks.
struct Labels {
  std::uint32_t digest = 0;
  std::uint16_t line_bytes = 0;  ///< As Outgoing has it.
};

/// Binds one tile of a call; `into` is cleared first.
void bind(const RoutedPlan& routed, const Geometry& geometry, Labels labels, std::uint32_t tile,
          BoundPlan& into);

/// `route[r]`: of the transport that reaches rank r; null for this rank.
Result<std::unique_ptr<RoutedPlan>> make_routed_plan(const Algorithm& algorithm, const Shape& shape,
                                                     Rank me,
                                                     const std::vector<Publications*>& route,
                                                     std::uint32_t slots);

}  // namespace anyccl
