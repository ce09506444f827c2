#pragma once

#include "plan/parallelism.hpp"

namespace anyccl::cli {

/// Bytes on one device: of the first stage, which holds the activations of most micro-batches.
struct DeviceMemory {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0;
  double all() const { return weights + gradients + optimizer + activations; }
};

DeviceMemory memory_of(const Model& model, const Parallelism& p);

/// Weights, gradients and optimizer of so many parameters, of which `devices` have equal ones and
/// divide what `zero` says. Rajbhandari et al., "ZeRO", 2020, figure 1.
DeviceMemory state_memory(double parameters, int devices, int zero, int gradient_bytes);

/// Activations of one micro-batch in one layer.
double layer_activation_bytes(const Model& model, const Parallelism& p);

}  // namespace anyccl::cli
