#include "plan/step.hpp"

#include <algorithm>

namespace anyccl::cli {
namespace {

/// Forward and backward together, in units of forward.
constexpr double kBothWays = 3;

/// How often a layer's activations go through memory in a step: the factor that was fitted.
constexpr double kMemoryPasses = 4;

/// What is computed a second time per token.
double repeated_flops(const TokenFlops& flops, Recompute recompute) {
  if (recompute == Recompute::none) return 0;
  return recompute == Recompute::full ? flops.layers() : flops.attention;
}

class Estimator {
 public:
  Estimator(const Model& m, const Cluster& c, const Parallelism& p)
      : m_(m), c_(c), p_(p), flops_(token_flops(m, p.sequence, p.attention)) {}

  StepEstimate run() const {
    StepEstimate step;
    const ComputeTime compute = compute_time();
    step.compute_s = compute.step_s;
    step.traffic = traffic_of(m_, c_, p_, compute);
    step.memory = memory_of(m_, p_);
    step.stage = with_exposed(compute.micro_batch, step.traffic);
    step.bubble_s = bubble_s(p_.schedule, p_.pipeline, p_.micro_batches(), step.stage);
    step.time_s = step.compute_s + step.bubble_s + step.exposed_s();
    step.tokens = static_cast<double>(p_.batch) * p_.sequence;
    step.model_flops = step_flops(m_, p_);
    step.hardware_flops = step.model_flops + step.tokens * repeated_flops(flops_, p_.recompute);
    step.flops_per_device_s = step.model_flops / step.time_s / c_.devices;
    const double peak = c_.device.bf16_TFLOPs * 1e12;
    step.mfu = step.flops_per_device_s / peak;
    step.hfu = step.mfu * step.hardware_flops / step.model_flops;
    return step;
  }

 private:
  /// FLOP/s of a device that are reached.
  double rate(double peak_TFLOPs) const {
    const Device& d = c_.device;
    return peak_TFLOPs * 1e12 * d.best_efficiency * m_.hidden / (m_.hidden + d.half_hidden);
  }
  double attention_rate() const { return rate(c_.device.bf16_TFLOPs); }
  double linear_rate() const {
    return p_.precision == Precision::fp8 ? rate(c_.device.fp8_TFLOPs) : attention_rate();
  }

  /// Forward, of all layers of the model, for one token.
  double layers_s() const {
    return (flops_.linear / linear_rate() + flops_.attention / attention_rate()) / p_.tensor;
  }
  /// Returns the time of recomputation: of all layers of the model, for one token.
  double repeated_s() const {
    if (p_.recompute == Recompute::full) return layers_s();
    return repeated_flops(flops_, p_.recompute) / attention_rate() / p_.tensor;
  }
  /// The time of activations through memory: one layer, one token, forward and backward.
  double memory_s() const {
    const TokenActivations a = token_activations(m_, p_.sequence);
    return kMemoryPasses * (a.split / p_.tensor + a.whole / p_.sequence_parts()) /
           (c_.device.memory_GBps * 1e9);
  }

  /// Returns a micro-batch of a stage without the output head, and all micro-batches of the stage
  /// that has most to do.
  ComputeTime compute_time() const {
    const double tokens = p_.micro_batch_tokens(), layers = p_.stage_layers(m_);
    const double all = m_.layers;
    const double forward = tokens * (layers_s() / all + memory_s() / kBothWays);
    const double backward =
        tokens * ((2 * layers_s() + repeated_s()) / all + memory_s() * (kBothWays - 1) / kBothWays);
    const double head = tokens * kBothWays * flops_.head / linear_rate() / p_.tensor;
    ComputeTime time;
    time.micro_batch = {layers * forward, layers * backward};
    // Where stages have different numbers of layers, the one with the head has fewer.
    const bool even = m_.layers % (p_.pipeline * p_.schedule.chunks) == 0;
    const double last = (layers - (even ? 0 : 1)) * (forward + backward) + head;
    time.step_s = p_.micro_batches() * std::max(time.micro_batch.both(), last);
    return time;
  }

  /// Adds the exposed part of the traffic of each micro-batch, half of it to either direction.
  StageTime with_exposed(StageTime stage, const std::vector<Traffic>& traffic) const {
    for (const Traffic& row : traffic) {
      if (!row.in_micro_batch) continue;
      stage.forward_s += row.exposed_s / p_.micro_batches() / 2;
      stage.backward_s += row.exposed_s / p_.micro_batches() / 2;
    }
    return stage;
  }

  const Model& m_;
  const Cluster& c_;
  const Parallelism& p_;
  const TokenFlops flops_;
};

}  // namespace

double StepEstimate::exposed_s() const {
  double sum = 0;
  for (const Traffic& row : traffic) sum += row.exposed_s;
  return sum;
}

StepEstimate estimate(const Model& model, const Cluster& cluster, const Parallelism& p) {
  return Estimator(model, cluster, p).run();
}

double step_flops(const Model& model, const Parallelism& p) {
  const double tokens = static_cast<double>(p.batch) * p.sequence;
  return kBothWays * tokens * token_flops(model, p.sequence, p.attention).total();
}

}  // namespace anyccl::cli
