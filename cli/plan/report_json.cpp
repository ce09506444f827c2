#include <nlohmann/json.hpp>

#include "plan/report.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

Json head_json(const Model& model, const Cluster& cluster) {
  const Parameters p = parameters(model);
  return {{"model", model.name},
          {"model_source", model.source},
          {"parameters", p.total},
          {"active_parameters", p.active},
          {"cluster", cluster.name},
          {"cluster_source", cluster.source},
          {"devices", cluster.devices},
          {"measured_links", cluster.measured.empty() ? Json(nullptr) : Json(cluster.measured)}};
}

Json to_json(const Parallelism& p) {
  return {{"tp", p.tensor},
          {"cp", p.context},
          {"pp", p.pipeline},
          {"ep", p.expert},
          {"dp", p.data},
          {"zero", p.zero},
          {"sequence_parallel", p.sequence_parallel},
          {"schedule", to_text(p.schedule)},
          {"micro_batch", p.micro_batch},
          {"micro_batches", p.micro_batches()},
          {"batch", p.batch},
          {"sequence", p.sequence},
          {"recompute", name(p.recompute)},
          {"precision", p.precision == Precision::fp8 ? "fp8" : "bf16"},
          {"attention", p.attention == Attention::causal ? "causal" : "full"},
          {"gradient_bytes", p.gradient_bytes},
          {"overlap", p.overlap},
          {"imbalance", p.imbalance}};
}

Json to_json(const std::vector<Traffic>& traffic) {
  Json rows = Json::array();
  for (const Traffic& row : traffic)
    rows.push_back({{"kind", row.kind},
                    {"primitive", row.primitive},
                    {"between_hosts", row.between},
                    {"bytes", row.bytes},
                    {"time_s", row.time_s},
                    {"exposed_s", row.exposed_s}});
  return rows;
}

Json to_json(const PlannedStep& plan, const Device& device) {
  const StepEstimate& s = plan.step;
  return {{"layout", to_json(plan.layout)},
          {"time_s", s.time_s},
          {"compute_s", s.compute_s},
          {"bubble_s", s.bubble_s},
          {"exposed_s", s.exposed_s()},
          {"exposed_share", s.exposed_share()},
          {"traffic", to_json(s.traffic)},
          {"memory_bytes",
           {{"weights", s.memory.weights},
            {"gradients", s.memory.gradients},
            {"optimizer", s.memory.optimizer},
            {"activations", s.memory.activations},
            {"all", s.memory.all()},
            {"fits", fits(s.memory, device)}}},
          {"tokens", s.tokens},
          {"tokens_per_s", s.tokens_per_s()},
          {"model_flops", s.model_flops},
          {"hardware_flops", s.hardware_flops},
          {"flops_per_device_s", s.flops_per_device_s},
          {"mfu", s.mfu},
          {"hfu", s.hfu}};
}

std::string written(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_json(const StepReport& report) {
  Json json = head_json(report.model, report.cluster);
  json.update(to_json(report.plan, report.cluster.device));
  json["remedies"] = Json::array();
  for (const Remedy& r : report.remedies)
    json["remedies"].push_back(
        {{"change", r.change}, {"exposed_share", r.share}, {"speed_up", r.speed_up}});
  return written(json);
}

std::string to_json(const SearchReport& report) {
  const LayoutSearch& found = report.found;
  Json json = head_json(report.model, report.cluster);
  json.update({{"fitting", found.fitting}, {"too_large", found.too_large}});
  json["best"] = Json::array();
  for (const PlannedStep& plan : found.best)
    json["best"].push_back(to_json(plan, report.cluster.device));
  json["fastest_too_large"] = found.fastest_too_large
                                  ? to_json(*found.fastest_too_large, report.cluster.device)
                                  : Json(nullptr);
  return written(json);
}

std::string to_json(const LayerReport& report) {
  const LayerTimes& t = report.times;
  Json json = head_json(report.model, report.cluster);
  json.update({{"layers", t.layers},
               {"compute_s", t.compute_s},
               {"communication_s", t.communication_s},
               {"latency_s", t.latency_s},
               {"share", t.share()},
               {"serial_s", t.serial_s()},
               {"overlapped_s", overlapped_s(t, 1)},
               {"bound_s", t.bound_s()}});
  json["calls"] = Json::array();
  for (const int group : group_sizes(t.layers))
    json["calls"].push_back({{"layers", group}, {"time_s", overlapped_s(t, group)}});
  return written(json);
}

}  // namespace anyccl::cli
