#include "plan/memory.hpp"

#include "plan/traffic.hpp"

namespace anyccl::cli {

DeviceMemory state_memory(double parameters, int devices, int zero, int gradient_bytes) {
  const auto part = [&](int from) { return parameters / (zero >= from ? devices : 1); };
  return {part(3) * kWeightBytes, part(2) * gradient_bytes, part(1) * kOptimizerBytes};
}

double layer_activation_bytes(const Model& model, const Parallelism& p) {
  const TokenActivations a = token_activations(model, p.sequence);
  const double parts = p.sequence_parts(), tokens = p.micro_batch_tokens();
  if (p.recompute == Recompute::full) return tokens * a.input / parts;
  const double scores = p.recompute == Recompute::none ? a.scores : 0;
  return tokens * (a.whole / parts + (a.split + scores) / p.tensor);
}

DeviceMemory memory_of(const Model& model, const Parallelism& p) {
  const DeviceParameters own = device_parameters(model, p);
  const int devices = p.data * p.context;
  DeviceMemory memory = state_memory(own.dense, devices, p.zero, p.gradient_bytes);
  const DeviceMemory routed =
      state_memory(own.routed, devices / p.expert, p.zero, p.gradient_bytes);
  const int copies = weight_copies(p.schedule);
  memory.weights = copies * (memory.weights + routed.weights);
  memory.gradients += routed.gradients;
  memory.optimizer += routed.optimizer;
  memory.activations = layer_activation_bytes(model, p) * p.stage_layers(model) *
                       held_micro_batches(p.schedule, p.pipeline, p.micro_batches());
  return memory;
}

}  // namespace anyccl::cli
