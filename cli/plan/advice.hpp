#pragma once

#include <string>
#include <vector>

#include "plan/search.hpp"

namespace anyccl::cli {

/// The 30 % rule: a larger exposed share of a step is worth a remedy.
inline constexpr double kTolerableShare = 0.3;

/// A change, and the step after it.
struct Remedy {
  std::string change;
  double share = 0;     ///< Exposed communication of the step.
  double speed_up = 0;  ///< Tokens per second, over those of the plan.
};

/// Returns the step after each remedy: 4 times the batch, the best layout, if there is one, and a
/// network 2 and 4 times as fast between hosts.
std::vector<Remedy> remedies(const Model& model, const Cluster& cluster, const PlannedStep& plan);

}  // namespace anyccl::cli
