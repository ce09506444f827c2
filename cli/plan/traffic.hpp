#pragma once

#include <string_view>
#include <vector>

#include "plan/parallelism.hpp"

namespace anyccl::cli {

/// Computing beside which communication can be hidden, on the stage with most layers.
struct ComputeTime {
  StageTime micro_batch;
  double step_s = 0;  ///< All micro-batches.
};

/// What one device sends in a step for one kind of parallelism.
struct Traffic {
  std::string_view kind, primitive;
  double bytes = 0;
  bool between = false;  ///< Through the network, not inside a host.
  double time_s = 0;
  double exposed_s = 0;  ///< The part of it during which nothing is computed.
  /// Whether it repeats in every micro-batch, so that a pipeline bubble has its share of it.
  bool in_micro_batch = false;
};

/// The kinds that this parallelism has, in the order of tp, vocabulary, cp, ep, pp, dp.
std::vector<Traffic> traffic_of(const Model& model, const Cluster& cluster, const Parallelism& p,
                                const ComputeTime& compute);

/// Bytes of one micro-batch's activations between two layers, of all tensor parallel devices.
double activation_bytes(const Model& model, const Parallelism& p);

/// Bytes for experts, forward: dispatched and combined, each token in `copies`. Copies that stay on
/// the device count, too.
double expert_bytes(const Model& model, double tokens, double copies, Precision precision);

/// Parameters of one device, on average over the stages.
struct DeviceParameters {
  double dense = 0, routed = 0;
  double all() const { return dense + routed; }
};
DeviceParameters device_parameters(const Model& model, const Parallelism& p);

/// Bytes for gradients and weights that a device sends among `devices`, which divide them as `zero`
/// says: AllReduce for 0, else ReduceScatter and AllGather. From ZeRO-2 on gradients, and with
/// ZeRO-3 also weights, travel in every micro-batch.
double gradient_traffic_bytes(double parameters, int devices, int zero, int gradient_bytes,
                              int micro_batches);

}  // namespace anyccl::cli
