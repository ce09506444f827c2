#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/advice.hpp"
#include "plan/overlap.hpp"

namespace anyccl::cli {

/// The answer to `anyccl plan` about one layout.
struct StepReport {
  const Model& model;
  const Cluster& cluster;
  PlannedStep plan;
  std::vector<Remedy> remedies;  ///< Empty where the 30 % rule asks for none.
};
/// Estimates a step of this layout, with remedies if the 30 % rule asks for them. `model` and
/// `cluster` outlive the report.
StepReport report_step(const Model& model, const Cluster& cluster, const Parallelism& layout);

/// About all layouts.
struct SearchReport {
  const Model& model;
  const Cluster& cluster;
  LayoutSearch found;
};

/// About measured layers.
struct LayerReport {
  const Model& model;
  const Cluster& cluster;
  LayerTimes times;
};

std::string to_text(const StepReport& report);
std::string to_text(const SearchReport& report);
std::string to_text(const LayerReport& report);

std::string to_json(const StepReport& report);
std::string to_json(const SearchReport& report);
std::string to_json(const LayerReport& report);

// Pictures that need no other file.
std::string to_svg(const StepReport& report);
std::string to_svg(const SearchReport& report);
std::string to_svg(const LayerReport& report);

/// "23.1 %"
std::string percent(double part);

/// Groups of layers that one call can be for: 1, 2, 4 ... and all.
std::vector<int> group_sizes(int layers);

}  // namespace anyccl::cli
