#pragma once

#include <optional>
#include <vector>

#include "plan/step.hpp"

namespace anyccl::cli {

/// A layout with its estimate.
struct PlannedStep {
  Parallelism layout;
  StepEstimate step;
};

/// The part of a device's memory that a plan may fill: libraries and fragments take the rest.
inline constexpr double kUsableMemory = 0.92;
bool fits(const DeviceMemory& memory, const Device& device);

/// All layouts that there are, and what became of them.
struct LayoutSearch {
  std::vector<PlannedStep>
      best;  ///< Those that fit, the fastest first, at most as many as asked for.
  int fitting = 0, too_large = 0;
  std::optional<PlannedStep> fastest_too_large;
};

/// Tries tensor parallelism within a host, context and expert parallelism, pipelines of 1F1B and
/// interleaved 1F1B, ZeRO-1 and 3, micro-batches of 1 to 8, and selective and full recomputation.
/// Batch, sequence, precision, attention, gradients, overlap and imbalance are those of `wanted`.
LayoutSearch search_layouts(const Model& model, const Cluster& cluster, const Parallelism& wanted,
                            std::size_t most);

}  // namespace anyccl::cli
