#include "simulate/host_plans.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "framework/collective/tiling.hpp"
#include "framework/membership/membership.hpp"
#include "framework/tuning/tuner.hpp"

namespace anyccl::cli {

namespace {

/// Through the ring; what fits a slot is not.
double staged_bytes(const BoundPlan& bound, std::uint32_t line_bytes) {
  double bytes = 0;
  for (const Outgoing& out : bound.outs)
    if (out.bytes > line_bytes) bytes += static_cast<double>(out.bytes);
  return bytes;
}

}  // namespace

bool HostPlans::can_plan(const Algorithm& algorithm, int ranks) {
  return has_equal_blocks(algorithm.collective) && ranks <= static_cast<int>(kMostPlanned);
}

Result<HostPlans> HostPlans::of(const Algorithm& algorithm, const Shape& shape) {
  if (!algorithm.supports(shape))
    return error(Code::invalid_argument, "{} needs {}, not {} ranks", id(algorithm),
                 algorithm.needs, shape.size);
  HostPlans all;
  all.slots_ = slots_for(shape.size);
  all.ring_bytes_ = ring_bytes_for(shape.size, false);
  const std::vector<Publications*> route(static_cast<std::size_t>(shape.size), nullptr);
  for (int r = 0; r < shape.size; ++r) {
    ANYCCL_TRY(std::unique_ptr<RoutedPlan> plan,
               make_routed_plan(algorithm, shape, Rank{r}, route, all.slots_));
    all.plans_.push_back(std::move(plan));
  }
  return all;
}

std::size_t HostPlans::wanted_tile_bytes(std::size_t bytes) const {
  return usual_tile({.shape = plans_[0]->plan.schedule.contract.shape(), .bytes = bytes});
}

HostPlans::Bound HostPlans::bind(std::size_t bytes) const {
  const Contract& contract = plans_[0]->plan.schedule.contract;
  Bound call;
  call.bytes = bytes;
  const Tiling tiling = choose_tiling(
      *plans_[0],
      {.slots = slots_, .ring_bytes = ring_bytes_, .chunks_per_block = contract.chunks_per_block()},
      wanted_tile_bytes(bytes));
  const Geometry geometry = Geometry::of_vector(contract, bytes, tiling.tile_bytes);
  call.tiles = geometry.tiles();
  call.lanes = std::min(tiling.lanes, call.tiles);
  call.line_bytes = static_cast<std::uint32_t>(line_bytes_for(contract.shape().size));
  call.posts_each =
      plans_[0]->plan.posts_each &&
      (bytes >= kLendFrom || most_publications(plans_[0]->plan) * call.tiles > slots_);
  const Labels labels{.digest = 0, .line_bytes = static_cast<std::uint16_t>(call.line_bytes)};
  call.full.resize(ranks());
  call.last.resize(ranks());
  for (std::uint32_t r = 0; r < ranks(); ++r) {
    anyccl::bind(*plans_[r], geometry, labels, call.tiles - 1, call.last[r]);
    if (call.tiles > 1) anyccl::bind(*plans_[r], geometry, labels, 0, call.full[r]);
    add_memory(r, geometry, call);
  }
  return call;
}

/// What rank r has and publishes.
void HostPlans::add_memory(std::uint32_t r, const Geometry& geometry, Bound& call) const {
  const Schedule& schedule = plans_[r]->plan.schedule;
  const double full = call.tiles > 1 ? staged_bytes(call.full[r], call.line_bytes) : 0;
  const double last = staged_bytes(call.last[r], call.line_bytes);
  call.published_bytes += ((call.tiles - 1) * full + last) / ranks();
  const std::size_t scratch = call.lanes * schedule.scratch.size() * geometry.scratch_chunk();
  call.scratch_bytes = std::max(call.scratch_bytes, static_cast<double>(scratch));
  if (!schedule.contract.has_bytes()) return;
  const double blocks =
      static_cast<double>(schedule.chunks(Space::input) + schedule.chunks(Space::output)) /
      schedule.contract.chunks_per_block();
  call.user_bytes += blocks * static_cast<double>(call.bytes) / ranks();
}

}  // namespace anyccl::cli
