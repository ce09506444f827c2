#pragma once

#include <vector>

#include "plan/memory.hpp"
#include "plan/traffic.hpp"

namespace anyccl::cli {

/// One step of training, estimated. `time_s` is the sum of `compute_s`, `bubble_s` and what is
/// exposed of each traffic.
struct StepEstimate {
  double time_s = 0;
  double compute_s = 0;  ///< On the stage that has most to do.
  double bubble_s = 0;
  StageTime stage;  ///< One micro-batch, with the communication in it that is exposed.
  std::vector<Traffic> traffic;
  DeviceMemory memory;
  double tokens = 0;
  double model_flops = 0;     ///< What the model needs, on all devices.
  double hardware_flops = 0;  ///< With those of recomputation.
  double flops_per_device_s = 0;
  double mfu = 0, hfu = 0;  ///< Model and hardware FLOPs over what the devices could do, in bf16.

  double exposed_s() const;
  double exposed_share() const { return exposed_s() / time_s; }
  double tokens_per_s() const { return tokens / time_s; }
};

/// For what check() finds right.
StepEstimate estimate(const Model& model, const Cluster& cluster, const Parallelism& p);

/// Model FLOPs of one step.
double step_flops(const Model& model, const Parallelism& p);

}  // namespace anyccl::cli
