#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "anyccl/status.hpp"
#include "plan/cluster.hpp"
#include "plan/model.hpp"
#include "plan/pipeline.hpp"

namespace anyccl::cli {

// Bytes of one parameter in bf16; of one number of an activation; of the optimizer's state for one
// parameter: a copy and two moments in fp32.
inline constexpr double kWeightBytes = 2, kActivationBytes = 2, kOptimizerBytes = 12;

/// Which activations are computed again in the backward pass instead of being kept.
enum class Recompute { none, selective, full };

/// The type in which matrices are multiplied.
enum class Precision { bf16, fp8 };

/// How a model is spread over devices, and what one step of training is. Ranks are numbered with
/// tensor parallel devices next to each other, then context, expert, data and pipeline parallel
/// ones.
struct Parallelism {
  int tensor = 1, context = 1, pipeline = 1, data = 1;
  int expert = 1;  ///< Divides context * data: experts are spread over these.
  int zero = 1;    ///< 0: all have all; 1: optimizer, 2: gradients, 3: weights divided.
  bool sequence_parallel = false;  ///< Norms and dropout are divided over tensor devices, too.
  int micro_batch = 1;             ///< Sequences.
  int batch = 1, sequence = 1;     ///< Sequences of a step, and tokens of each.
  PipelineSchedule schedule;
  Recompute recompute = Recompute::selective;
  Precision precision = Precision::bf16;
  Attention attention = Attention::causal;
  int gradient_bytes = 4;
  bool overlap = false;  ///< Tensor, context and expert communication beside computing.
  double imbalance = 1;  ///< Tokens of the busiest expert over the mean.

  std::int64_t devices() const { return std::int64_t{tensor} * context * pipeline * data; }
  int micro_batches() const { return batch / (data * micro_batch); }
  double micro_batch_tokens() const {  ///< On one device.
    return static_cast<double>(micro_batch) * sequence / context;
  }
  /// By how much sequence parallelism divides what tensor parallelism leaves whole.
  int sequence_parts() const { return sequence_parallel ? tensor : 1; }
  /// Layers of the stage that has most of them.
  int stage_layers(const Model& model) const;
};

/// The most stages of a pipeline: its ends may have the embedding and the head in place of a layer.
inline int most_stages(const Model& model) {
  return model.layers + 2;
}

/// Whether the model can be spread so. Errors: invalid_argument, with what must divide what.
Status check(const Parallelism& p, const Model& model, const Cluster& cluster);

/// Returns, for example, "tp 8, pp 16, dp 128, zero 1, sp, 1f1b, micro-batch 1, recompute full".
/// Leaves out tp, cp, pp and ep where they are 1.
std::string to_text(const Parallelism& p);

std::string_view name(Recompute recompute);

}  // namespace anyccl::cli
