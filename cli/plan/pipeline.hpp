#pragma once

#include <string>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// In which order the stages of a pipeline work on the micro-batches of a step.
struct PipelineSchedule {
  enum class Kind {
    gpipe,        ///< All forward, then all backward. Huang et al., 2019.
    one_f_one_b,  ///< Backward as soon as possible. Narayanan et al., 2019 (with a flush).
    interleaved,  ///< 1F1B, each device with several chunks of layers. Narayanan et al., 2021.
    two_bw,       ///< Without a flush: two versions of the weights. Narayanan et al., 2021 (2BW).
    zero_bubble,  ///< Weight gradients fill the bubble (ZB1P). Qi et al., 2023.
    dual_pipe,    ///< From both ends. DeepSeek-V3 Technical Report, 2024, table 2.
  };
  Kind kind = Kind::one_f_one_b;
  int chunks = 1;  ///< A device's; above 1 only if interleaved.
};

/// "gpipe", "1f1b", "interleaved:4", "2bw", "zb" or "dualpipe". Errors: invalid_argument.
Result<PipelineSchedule> parse_schedule(const std::string& text);
std::string to_text(const PipelineSchedule& schedule);

/// How long one micro-batch takes on one stage, all chunks of it. Half of backward is for weight
/// gradients.
struct StageTime {
  double forward_s = 0, backward_s = 0;
  double both() const { return forward_s + backward_s; }
};

/// For how long a device of a step has nothing to do.
double bubble_s(const PipelineSchedule& schedule, int stages, int micro_batches, StageTime time);

/// The micro-batches whose activations the first device holds at most; a chunk counts as its share.
double held_micro_batches(const PipelineSchedule& schedule, int stages, int micro_batches);

/// How many versions or copies of the weights a device has.
int weight_copies(const PipelineSchedule& schedule);

/// One micro-batch in one chunk.
struct PipelineSpan {
  int stage = 0, chunk = 0, micro_batch = 0;
  bool backward = false;
  double begin_s = 0, end_s = 0;
};

/// Whether pipeline_trace() knows the order of it.
bool has_trace(const PipelineSchedule& schedule);

/// A step of gpipe, 1f1b or interleaved, as a simulation of all stages gives it. Sending takes no
/// time. For interleaved, the micro-batches must be a multiple of the stages.
std::vector<PipelineSpan> pipeline_trace(const PipelineSchedule& schedule, int stages,
                                         int micro_batches, StageTime time);

}  // namespace anyccl::cli
