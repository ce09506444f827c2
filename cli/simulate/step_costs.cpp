#include "simulate/step_costs.hpp"

#include <algorithm>

namespace anyccl::cli {

StepCosts::StepCosts(const Machine& machine, std::uint32_t ranks, std::uint32_t ranks_per_host,
                     double bytes)
    : machine_(machine), ranks_per_host_(ranks_per_host == 0 ? ranks : ranks_per_host) {
  hosts_ = (ranks + ranks_per_host_ - 1) / ranks_per_host_;
  if (machine.calibration == nullptr) return;
  const Calibration& c = *machine.calibration;
  inside_ = c.find(machine.inside);
  between_ = c.find(machine.between);
  const auto cores = static_cast<std::uint32_t>(c.cores);
  const bool in_turns = std::min(ranks, ranks_per_host_) > cores;
  factor_ = c.factor_at(machine.inside, bytes, in_turns);
  const std::uint32_t at_once = std::min({cores, ranks, ranks_per_host_});
  if (c.memory_bytes_per_s > 0 && c.copy_s > 0)
    shared_ = std::max(1.0, at_once / c.copy_s / c.memory_bytes_per_s);
  if (!in_turns) return;
  cores_ = cores;
  hand_over_s_ = factor_ * c.hand_over_s;
}

/// The sender's part of beta. At most half: with a fast copy the reader, who fetches lines of
/// another core, is the slower side.
double StepCosts::copied_s(const CostSegment& segment) const {
  return std::min(machine_.calibration->copy_s, segment.beta_s / 2);
}

StepCosts::Departure StepCosts::departure(bool inside, bool is_first, double bytes) const {
  if (machine_.calibration == nullptr)
    return {.after_s = machine_.overhead_s, .latency_s = machine_.alpha_s};
  const LinkCosts& link = inside ? *inside_ : *between_;
  const CostSegment& segment = link.at(bytes);
  const double latency_s = std::max(0.0, segment.alpha_s - 2 * link.overhead_s);
  if (!inside) {
    const double most = segment.beta_s > 0 ? 1 / segment.beta_s : Departure().most_bytes_per_s;
    return {.busy_s = factor_ * link.overhead_s, .latency_s = latency_s, .most_bytes_per_s = most};
  }
  const double copy_s = is_first ? link.overhead_s + bytes * copied_s(segment) * shared_ : 0;
  return {.busy_s = factor_ * copy_s, .latency_s = factor_ * latency_s, .by_network = false};
}

double StepCosts::work_s(std::uint32_t inside, std::uint32_t between, std::uint32_t additions,
                         double bytes) const {
  if (machine_.calibration == nullptr) return machine_.gamma_s_per_byte * bytes * additions;
  const Calibration& c = *machine_.calibration;
  double seconds = 0, per_byte = 0;
  if (inside > 0) {
    const CostSegment& segment = inside_->at(bytes);
    const double read_s = segment.beta_s - copied_s(segment);
    seconds += inside * inside_->overhead_s;
    // A vector that is added is read as one that is received is, and written once for all.
    per_byte +=
        additions == 0 ? inside * read_s : inside * std::max(0.0, read_s - c.write_s - c.read_s);
  }
  if (between > 0) seconds += between * between_->overhead_s;
  if (additions > 0) per_byte += (additions + 1) * c.read_s + c.write_s;
  return factor_ * (seconds + bytes * per_byte * shared_);
}

}  // namespace anyccl::cli
