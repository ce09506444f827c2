#pragma once

#include <memory>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"
#include "framework/collective/routed_plan.hpp"

namespace anyccl::cli {

/// More ranks would take long to lower; they are replayed as schedules.
inline constexpr std::uint32_t kMostPlanned = 64;

/// What the ranks of one host run, as the library lowers it: a plan for each rank.
class HostPlans {
 public:
  /// Errors: as those of the library for this shape.
  static Result<HostPlans> of(const Algorithm& algorithm, const Shape& shape);
  /// Whether it is a collective of vectors, or equal blocks, on few enough ranks.
  static bool can_plan(const Algorithm& algorithm, int ranks);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(plans_.size()); }
  std::uint32_t slots() const { return slots_; }
  std::size_t ring_bytes() const { return ring_bytes_; }
  const RoutedPlan& plan(std::uint32_t rank) const { return *plans_[rank]; }

  /// A call with sizes: how its ranks run.
  struct Bound {
    std::size_t bytes = 0;
    std::uint32_t tiles = 1, lanes = 1, line_bytes = 0;
    bool posts_each = false;
    double user_bytes = 0;              ///< Input and output of a rank, in the mean.
    double published_bytes = 0;         ///< By a rank through its ring, in the mean.
    double scratch_bytes = 0;           ///< That of the rank that has most.
    std::vector<BoundPlan> full, last;  ///< By rank: all tiles but the last, and the last one.
  };
  /// `bytes`: of the vector, or of a block.
  Bound bind(std::size_t bytes) const;

 private:
  std::size_t wanted_tile_bytes(std::size_t bytes) const;
  void add_memory(std::uint32_t rank, const Geometry& geometry, Bound& call) const;

  std::vector<std::unique_ptr<RoutedPlan>> plans_;
  std::uint32_t slots_ = 0;
  std::size_t ring_bytes_ = 0;
};

}  // namespace anyccl::cli
