#include <fmt/format.h>

#include <algorithm>

#include "draw/table.hpp"
#include "plan/report.hpp"

namespace anyccl::cli {
namespace {

/// Says that nothing was measured, or nothing but the links that `cluster.measured` names.
std::string estimate_line(const Cluster& cluster) {
  return fmt::format(
      "An estimate: nothing was measured{}. docs/lab/plan.md says how far it was off where that is "
      "known.\n",
      cluster.measured.empty() ? "" : " but links (" + cluster.measured + ")");
}

std::string ms(double seconds) {
  return fmt::format("{:.1f}", 1e3 * seconds);
}

std::string head_text(const Model& model, const Cluster& cluster) {
  const Parameters p = parameters(model);
  std::string text = fmt::format("{}: {:.4g}e9 parameters", model.name, p.total / 1e9);
  if (p.active != p.total) text += fmt::format(", {:.3g}e9 of them for one token", p.active / 1e9);
  return text + fmt::format("; {} x {}, {} on a host\n", cluster.devices, cluster.device.name,
                            cluster.devices_per_host);
}

/// Has lines for computing, the bubble, each kind of traffic and the whole step.
std::string step_table(const StepEstimate& step) {
  const auto share = [&](double seconds) { return percent(seconds / step.time_s); };
  std::vector<Line> lines{{"part", "primitive", "way", "GB sent", "ms", "ms exposed", "share"}};
  const auto alone = [&](const char* part, double seconds) {
    lines.push_back({part, "", "", "", ms(seconds), ms(seconds), share(seconds)});
  };
  alone("compute", step.compute_s);
  alone("bubble", step.bubble_s);
  for (const Traffic& row : step.traffic)
    lines.push_back({std::string(row.kind), std::string(row.primitive),
                     row.between ? "between hosts" : "inside a host",
                     fmt::format("{:.2f}", row.bytes / 1e9), ms(row.time_s), ms(row.exposed_s),
                     share(row.exposed_s)});
  alone("step", step.time_s);
  return table(lines);
}

std::string memory_line(const DeviceMemory& m, const Device& device) {
  return fmt::format(
      "memory of a device: {:.2f} GB weights + {:.2f} gradients + {:.2f} optimizer + {:.2f} "
      "activations = {:.2f} of {:g} GB{}\n",
      m.weights / 1e9, m.gradients / 1e9, m.optimizer / 1e9, m.activations / 1e9, m.all() / 1e9,
      device.memory_GB, fits(m, device) ? "" : ": TOO LARGE");
}

std::string exposure_text(const StepReport& report) {
  const StepEstimate& step = report.plan.step;
  const double share = step.exposed_share();
  std::string text = fmt::format("exposed communication: {} of the step, {} the 30 % rule",
                                 percent(share), share > kTolerableShare ? "above" : "within");
  if (report.remedies.empty())
    return text + fmt::format("; without any, x{:.2f} as fast\n", 1 / (1 - share));
  std::vector<Line> lines{{"remedy", "exposed", "speed"}};
  for (const Remedy& r : report.remedies)
    lines.push_back({r.change, percent(r.share), fmt::format("x{:.2f}", r.speed_up)});
  return text + "\n\n" + table(lines);
}

/// The 30 % rule for measured layers: what is known of them is how communication would shrink.
std::string layer_rule(const LayerTimes& t) {
  const auto share = [&](double divisor) {
    return percent(t.communication_s / divisor / (t.compute_s + t.communication_s / divisor));
  };
  std::string text =
      fmt::format("communication: {} of the time one after the other, {} the 30 % rule\n",
                  percent(t.share()), t.share() > kTolerableShare ? "above" : "within");
  if (t.share() <= kTolerableShare) return text;
  return text + "\n" +
         table({{"remedy", "communication"},
                {"accumulate 4 times the micro-batches (gradients only)", share(4)},
                {"a layout that sends half as much (see --search)", share(2)},
                {"a network of twice the speed", share(2)},
                {"a network of four times the speed", share(4)}});
}

}  // namespace

StepReport report_step(const Model& model, const Cluster& cluster, const Parallelism& layout) {
  StepReport report{model, cluster, {layout, estimate(model, cluster, layout)}, {}};
  if (report.plan.step.exposed_share() > kTolerableShare)
    report.remedies = remedies(model, cluster, report.plan);
  return report;
}

std::string percent(double part) {
  return fmt::format("{:.1f} %", 100 * part);
}

std::vector<int> group_sizes(int layers) {
  std::vector<int> sizes;
  for (int size = 1; size < layers; size *= 2) sizes.push_back(size);
  sizes.push_back(layers);
  return sizes;
}

std::string to_text(const StepReport& report) {
  const auto& [layout, step] = report.plan;
  return head_text(report.model, report.cluster) + to_text(layout) +
         fmt::format("\n{} tokens a step; micro-batches: {}; attention counted as {}\n\n",
                     step.tokens, layout.micro_batches(),
                     layout.attention == Attention::causal ? "causal" : "full") +
         step_table(step) + "\n" + memory_line(step.memory, report.cluster.device) +
         fmt::format("{:.1f} TFLOP/s a device: MFU {}, HFU {}; {:.4g} tokens/s\n",
                     step.flops_per_device_s / 1e12, percent(step.mfu), percent(step.hfu),
                     step.tokens_per_s()) +
         exposure_text(report) + estimate_line(report.cluster);
}

std::string to_text(const SearchReport& report) {
  const LayoutSearch& found = report.found;
  std::string text =
      head_text(report.model, report.cluster) +
      fmt::format("{} layouts fit, {} are too large\n\n", found.fitting, found.too_large);
  const auto line = [](std::string number, const PlannedStep& plan) {
    return Line{std::move(number),
                to_text(plan.layout),
                ms(plan.step.time_s),
                percent(plan.step.mfu),
                percent(plan.step.bubble_s / plan.step.time_s),
                percent(plan.step.exposed_share()),
                fmt::format("{:.1f}", plan.step.memory.all() / 1e9)};
  };
  std::vector<Line> lines{{"", "layout", "ms", "MFU", "bubble", "exposed", "GB"}};
  for (std::size_t i = 0; i < found.best.size(); ++i)
    lines.push_back(line(std::to_string(i + 1), found.best[i]));
  if (found.fastest_too_large) lines.push_back(line("too large", *found.fastest_too_large));
  return text + table(lines) + "\n" + estimate_line(report.cluster);
}

std::string to_text(const LayerReport& report) {
  const LayerTimes& t = report.times;
  const double serial = t.serial_s(), last_shows = overlapped_s(t, 1);
  std::string text =
      head_text(report.model, report.cluster) +
      fmt::format("{} layers, each {} ms of computing and {} ms of communication\n\n", t.layers,
                  ms(t.compute_s), ms(t.communication_s));
  const auto line = [&](std::string what, double seconds) {
    return Line{std::move(what), ms(seconds), fmt::format("x{:.2f}", serial / seconds)};
  };
  std::vector<Line> lines{{"a step", "ms", "speed"}, line("one after the other", serial)};
  if (const int expert_layers = report.model.expert_layers(); expert_layers > 0)
    lines.push_back(
        line(fmt::format("the same, if only the {} layers with experts communicate", expert_layers),
             t.compute_only_s() + expert_layers * t.communication_s));
  lines.push_back(line("overlapped, but for the last layer's communication", last_shows));
  lines.push_back(line("bound: all communication hidden", t.bound_s()));
  text += table(lines);
  if (t.latency_s > 0) {
    std::vector<Line> calls{{"layers per call", "calls", "ms"}};
    for (const int group : group_sizes(t.layers))
      calls.push_back({std::to_string(group), std::to_string((t.layers + group - 1) / group),
                       ms(overlapped_s(t, group))});
    text += fmt::format("\noverlapped, where {} ms of each call are latency\n", ms(t.latency_s)) +
            table(calls);
  }
  return text +
         fmt::format("\ncommunication costs {:.1f} device-seconds a step\n",
                     (serial - t.compute_only_s()) * report.cluster.devices) +
         layer_rule(t);
}

}  // namespace anyccl::cli
