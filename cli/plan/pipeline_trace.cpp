#include <algorithm>
#include <optional>

#include "plan/pipeline.hpp"

namespace anyccl::cli {
namespace {

using Kind = PipelineSchedule::Kind;

/// Runs the stages side by side, each through its own order, as far as what they need has ended.
class Simulation {
 public:
  Simulation(const PipelineSchedule& schedule, int stages, int micro_batches, StageTime time)
      : stages_(stages),
        micro_batches_(micro_batches),
        chunks_(schedule.chunks),
        time_(time),
        ends_(static_cast<std::size_t>(2 * stages * chunks_ * micro_batches)) {
    for (int stage = 0; stage < stages; ++stage) orders_.push_back(work_order(schedule, stage));
  }

  std::vector<PipelineSpan> run() && {
    std::vector<std::size_t> next(orders_.size());
    std::vector<double> free_s(orders_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < orders_.size(); ++stage)
        for (; next[stage] < orders_[stage].size(); ++next[stage], moved = true)
          if (!start_if_ready(orders_[stage][next[stage]], free_s[stage])) break;
    }
    return std::move(spans_);
  }

 private:
  /// The k-th piece of work in one direction: runs of as many micro-batches as there are stages go
  /// through one chunk after the other. Backward begins with the last chunk.
  PipelineSpan kth_piece(int stage, int k, bool backward) const {
    const int run = std::min(stages_, micro_batches_), chunk = chunks_ == 1 ? 0 : k / run % chunks_;
    return {stage, backward ? chunks_ - 1 - chunk : chunk,
            chunks_ == 1 ? k : k / (run * chunks_) * run + k % run, backward};
  }

  /// The pieces that go forward before forward and backward alternate, if there are so many.
  int warm_up(const PipelineSchedule& schedule, int stage) const {
    const int after = stages_ - 1 - stage;
    if (schedule.kind == Kind::gpipe) return micro_batches_;
    if (chunks_ == 1) return after;
    return 2 * after + (chunks_ - 1) * stages_;
  }

  std::vector<PipelineSpan> work_order(const PipelineSchedule& schedule, int stage) const {
    const int all = micro_batches_ * chunks_, ahead = std::min(all, warm_up(schedule, stage));
    std::vector<PipelineSpan> work;
    for (int k = 0; k < ahead; ++k) work.push_back(kth_piece(stage, k, false));
    for (int k = 0; k < all; ++k) {
      if (ahead + k < all) work.push_back(kth_piece(stage, ahead + k, false));
      work.push_back(kth_piece(stage, k, true));
    }
    return work;
  }

  std::optional<double>& end_of(int place, int micro_batch, bool backward) {
    return ends_[static_cast<std::size_t>((place * micro_batches_ + micro_batch) * 2 +
                                          (backward ? 1 : 0))];
  }

  /// What it needs: the chunk before it, or, backward, the one after it.
  std::optional<double> ready_s(const PipelineSpan& span, int place) {
    if (!span.backward) return place == 0 ? 0.0 : end_of(place - 1, span.micro_batch, false);
    const bool last = place == stages_ * chunks_ - 1;
    return last ? end_of(place, span.micro_batch, false)
                : end_of(place + 1, span.micro_batch, true);
  }

  bool start_if_ready(PipelineSpan span, double& free_s) {
    const int place = span.chunk * stages_ + span.stage;
    const std::optional<double> ready = ready_s(span, place);
    if (!ready) return false;
    span.begin_s = std::max(free_s, *ready);
    span.end_s = span.begin_s + (span.backward ? time_.backward_s : time_.forward_s) / chunks_;
    free_s = span.end_s;
    end_of(place, span.micro_batch, span.backward) = span.end_s;
    spans_.push_back(span);
    return true;
  }

  const int stages_, micro_batches_, chunks_;
  const StageTime time_;
  std::vector<std::vector<PipelineSpan>> orders_;
  std::vector<std::optional<double>> ends_;  // by place, micro-batch and direction
  std::vector<PipelineSpan> spans_;
};

}  // namespace

bool has_trace(const PipelineSchedule& schedule) {
  return schedule.kind == Kind::gpipe || schedule.kind == Kind::one_f_one_b ||
         schedule.kind == Kind::interleaved;
}

std::vector<PipelineSpan> pipeline_trace(const PipelineSchedule& schedule, int stages,
                                         int micro_batches, StageTime time) {
  return Simulation(schedule, stages, micro_batches, time).run();
}

}  // namespace anyccl::cli
