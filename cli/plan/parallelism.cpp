#include "plan/parallelism.hpp"

#include "base/error.hpp"

namespace anyccl::cli {
namespace {

using Kind = PipelineSchedule::Kind;

Status check_schedule(const Parallelism& p, const Model& model) {
  const std::int64_t places = std::int64_t{p.pipeline} * p.schedule.chunks;
  if (places > most_stages(model))
    return error(Code::invalid_argument, "{} layers are too few for {} stages of {} chunks",
                 model.layers, p.pipeline, p.schedule.chunks);
  if (p.schedule.kind == Kind::interleaved && p.micro_batches() % p.pipeline != 0)
    return error(Code::invalid_argument,
                 "interleaved: {} micro-batches must be a multiple of --pp {}", p.micro_batches(),
                 p.pipeline);
  if (p.schedule.kind == Kind::dual_pipe && (p.pipeline % 2 != 0 || p.micro_batches() < p.pipeline))
    return error(Code::invalid_argument,
                 "dualpipe: --pp {} must be even and not above {} micro-batches", p.pipeline,
                 p.micro_batches());
  return {};
}

Status check_experts(const Parallelism& p, const Model& model) {
  if (p.expert == 1) return {};
  if (!model.experts)
    return error(Code::invalid_argument, "--ep {}: {} has no experts", p.expert, model.name);
  if (model.experts->routed % p.expert != 0)
    return error(Code::invalid_argument, "--ep {} must divide {} experts", p.expert,
                 model.experts->routed);
  if (p.data * p.context % p.expert != 0)
    return error(Code::invalid_argument, "--ep {} must divide {} data and context parallel devices",
                 p.expert, p.data * p.context);
  return {};
}

}  // namespace

int Parallelism::stage_layers(const Model& model) const {
  const int places = pipeline * schedule.chunks;
  return (model.layers + places - 1) / places * schedule.chunks;
}

Status check(const Parallelism& p, const Model& model, const Cluster& cluster) {
  if (p.data < 1 || p.devices() != cluster.devices)
    return error(Code::invalid_argument, "--tp {} x --cp {} x --pp {} must divide {} devices",
                 p.tensor, p.context, p.pipeline, cluster.devices);
  if (model.heads % p.tensor != 0)
    return error(Code::invalid_argument, "--tp {} must divide {} attention heads", p.tensor,
                 model.heads);
  if (p.sequence % (p.context * p.sequence_parts()) != 0)
    return error(Code::invalid_argument, "--seq {} must be a multiple of {} devices that share it",
                 p.sequence, p.context * p.sequence_parts());
  if (p.batch % (std::int64_t{p.data} * p.micro_batch) != 0)
    return error(Code::invalid_argument, "--batch {} must be a multiple of dp {} x --micro {}",
                 p.batch, p.data, p.micro_batch);
  if (!(p.imbalance >= 1))  // a NaN, too
    return error(Code::invalid_argument, "--imbalance {}: it must be at least 1", p.imbalance);
  if (p.precision == Precision::fp8 && cluster.device.fp8_TFLOPs == 0)
    return error(Code::invalid_argument, "--precision fp8: {} has none", cluster.device.name);
  ANYCCL_CHECK(check_experts(p, model));
  return check_schedule(p, model);
}

std::string_view name(Recompute recompute) {
  constexpr std::string_view kNames[] = {"none", "selective", "full"};
  return kNames[static_cast<int>(recompute)];
}

std::string to_text(const Parallelism& p) {
  std::string text;
  for (const auto& [word, degree] : {std::pair{"tp", p.tensor}, std::pair{"cp", p.context},
                                     std::pair{"pp", p.pipeline}, std::pair{"ep", p.expert}})
    if (degree > 1) text += fmt::format("{} {}, ", word, degree);
  text += fmt::format("dp {}, zero {}", p.data, p.zero);
  if (p.sequence_parallel) text += ", sp";
  if (p.pipeline > 1) text += ", " + to_text(p.schedule);
  return text + fmt::format(", micro-batch {}, recompute {}", p.micro_batch, name(p.recompute));
}

}  // namespace anyccl::cli
