#include "plan/advice.hpp"

#include <fmt/format.h>

namespace anyccl::cli {
namespace {

Remedy remedy(std::string change, const StepEstimate& after, const StepEstimate& before) {
  return {std::move(change), after.exposed_share(), after.tokens_per_s() / before.tokens_per_s()};
}

}  // namespace

std::vector<Remedy> remedies(const Model& model, const Cluster& cluster, const PlannedStep& plan) {
  std::vector<Remedy> found;
  Parallelism longer = plan.layout;
  longer.batch *= 4;
  found.push_back(
      remedy(fmt::format("accumulate 4 times the micro-batches (--batch {})", longer.batch),
             estimate(model, cluster, longer), plan.step));
  const LayoutSearch others = search_layouts(model, cluster, plan.layout, 1);
  if (!others.best.empty())
    found.push_back(remedy("the best layout: " + to_text(others.best[0].layout),
                           others.best[0].step, plan.step));
  for (const int times : {2, 4}) {
    Cluster faster = cluster;
    faster.between.GBps *= times;
    found.push_back(remedy(fmt::format("a network of {} GB/s per device", faster.between.GBps),
                           estimate(model, faster, plan.layout), plan.step));
  }
  return found;
}

}  // namespace anyccl::cli
