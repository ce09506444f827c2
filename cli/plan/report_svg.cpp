#include <fmt/format.h>

#include <algorithm>

#include "draw/colours.hpp"
#include "draw/map_page.hpp"
#include "plan/report.hpp"

namespace anyccl::cli {
namespace {

constexpr int kLeft = 150, kWidth = 720, kBar = 30, kLine = 22;
constexpr std::string_view kStyle = ".part{stroke:#FFF;stroke-width:.5}.idle{fill:#EEE}";

/// A page that grows downwards.
class Page {
 public:
  explicit Page(std::string title) : page_{std::move(title), kStyle, kLeft + kWidth, 0, {}} {}

  void words(std::string_view text, int x = MapPage::kMargin) {
    page_.body += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x, top_ + 16, text);
  }
  void down(int by) { top_ += by; }

  /// A part of the bar at this height; times from 0 to 1 are the whole width.
  void draw_part(double begin, double end, std::string_view colour, std::string_view title,
                 int height = kBar) {
    page_.body += fmt::format(
        "<rect class=\"part\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\">"
        "<title>{}</title></rect>\n",
        kLeft + begin * kWidth, top_, (end - begin) * kWidth, height, colour, title);
  }
  void draw_idle(double end, int height) {
    page_.body +=
        fmt::format("<rect class=\"idle\" x=\"{}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"/>\n",
                    kLeft, top_, end * kWidth, height);
  }
  /// A square of this colour and the text, on a line of their own: moves down by a line.
  void draw_key(std::string_view colour, std::string_view text) {
    page_.body += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\"/>\n",
                              kLeft, top_ + 4, colour);
    words(text, kLeft + 22);
    down(kLine);
  }

  std::string finish() && {
    page_.body_height = top_ - MapPage::kTitle;
    return to_svg(page_);
  }

 private:
  MapPage page_;
  int top_ = MapPage::kTitle + 10;
};

struct Part {
  std::string name;
  double size = 0;
};

/// One bar of all parts, and below it a line for each.
void draw_stack(Page& page, std::string_view name, const std::vector<Part>& parts, double whole,
                double unit, std::string_view unit_name) {
  page.words(name);
  page.draw_idle(1, kBar);
  double begin = 0;
  const auto text = [&](const Part& part) {
    return fmt::format("{}: {:.1f} {}, {:.1f} %", part.name, part.size / unit, unit_name,
                       100 * part.size / whole);
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    page.draw_part(begin / whole, (begin + parts[i].size) / whole, colour(i), text(parts[i]));
    begin += parts[i].size;
  }
  page.down(kBar + 4);
  for (std::size_t i = 0; i < parts.size(); ++i) page.draw_key(colour(i), text(parts[i]));
  page.down(8);
}

/// Takes of communication only the time that is exposed.
std::vector<Part> parts_of(const StepEstimate& step) {
  std::vector<Part> parts{{"compute", step.compute_s}, {"bubble", step.bubble_s}};
  for (const Traffic& row : step.traffic)
    parts.push_back({fmt::format("{} communication that is exposed", row.kind), row.exposed_s});
  return parts;
}

void stack_memory(Page& page, const DeviceMemory& m, const Device& device) {
  const double whole = std::max(m.all(), device.memory_GB * 1e9);
  draw_stack(page, "memory of a device",
             {{"weights", m.weights},
              {"gradients", m.gradients},
              {"optimizer", m.optimizer},
              {"activations", m.activations}},
             whole, 1e9, "GB");
}

/// A row for each stage; nothing for a single stage, a schedule without a trace, or more spans than
/// can be seen.
void draw_pipeline(Page& page, const PlannedStep& plan) {
  constexpr int kMostSpans = 4000, kRow = 16;
  const Parallelism& p = plan.layout;
  if (p.pipeline == 1 || !has_trace(p.schedule) ||
      2.0 * p.pipeline * p.schedule.chunks * p.micro_batches() > kMostSpans)
    return;
  const auto spans = pipeline_trace(p.schedule, p.pipeline, p.micro_batches(), plan.step.stage);
  double end_s = 0;
  for (const PipelineSpan& span : spans) end_s = std::max(end_s, span.end_s);
  for (int stage = 0; stage < p.pipeline; ++stage) {
    page.words(fmt::format("stage {}", stage));
    page.draw_idle(1, kRow);
    for (const PipelineSpan& span : spans)
      if (span.stage == stage)
        page.draw_part(span.begin_s / end_s, span.end_s / end_s, colour(span.backward ? 1 : 0),
                       fmt::format("{} of micro-batch {}, chunk {}: {:.1f} to {:.1f} ms",
                                   span.backward ? "backward" : "forward", span.micro_batch,
                                   span.chunk, 1e3 * span.begin_s, 1e3 * span.end_s),
                       kRow);
    page.down(kRow + 4);
  }
  page.draw_key(colour(0), "forward");
  page.draw_key(colour(1), "backward; grey: the bubble");
}

}  // namespace

std::string to_svg(const StepReport& report) {
  const auto& [layout, step] = report.plan;
  Page page(fmt::format("{} on {} x {}: {:.1f} ms a step, MFU {}", report.model.name,
                        report.cluster.devices, report.cluster.device.name, 1e3 * step.time_s,
                        percent(step.mfu)));
  page.words(to_text(layout) + "; an estimate");
  page.down(kLine + 6);
  draw_stack(page, "time of a step", parts_of(step), step.time_s, 1e-3, "ms");
  stack_memory(page, step.memory, report.cluster.device);
  draw_pipeline(page, report.plan);
  return std::move(page).finish();
}

std::string to_svg(const SearchReport& report) {
  Page page(fmt::format("{} on {} x {}: the best layouts", report.model.name,
                        report.cluster.devices, report.cluster.device.name));
  const auto& best = report.found.best;
  for (std::size_t i = 0; i < best.size(); ++i) {
    const StepEstimate& step = best[i].step;
    page.words(fmt::format("{}: {}; MFU {}", i + 1, to_text(best[i].layout), percent(step.mfu)));
    page.down(kLine);
    double begin = 0;
    const double whole = best.back().step.time_s;
    const std::vector<Part> parts{{"compute", step.compute_s},
                                  {"bubble", step.bubble_s},
                                  {"exposed communication", step.exposed_s()}};
    for (std::size_t k = 0; k < parts.size(); begin += parts[k].size, ++k)
      page.draw_part(begin / whole, (begin + parts[k].size) / whole, colour(k),
                     fmt::format("{}: {:.1f} ms", parts[k].name, 1e3 * parts[k].size), kLine);
    page.down(kLine + 8);
  }
  page.draw_key(colour(0), "compute");
  page.draw_key(colour(1), "bubble");
  page.draw_key(colour(2), "exposed communication");
  return std::move(page).finish();
}

std::string to_svg(const LayerReport& report) {
  const LayerTimes& t = report.times;
  const double whole = t.serial_s(), layer_s = t.compute_s + t.communication_s;
  Page page(fmt::format("{} layers, {:.3g} ms of computing and {:.3g} ms of communication each",
                        t.layers, 1e3 * t.compute_s, 1e3 * t.communication_s));
  const auto draw_part = [&](double begin_s, double end_s, bool communication, int layer) {
    page.draw_part(begin_s / whole, end_s / whole, colour(communication ? 1 : 0),
                   fmt::format("{} of layer {}: {:.1f} to {:.1f} ms",
                               communication ? "communication" : "computing", layer + 1,
                               1e3 * begin_s, 1e3 * end_s));
  };
  page.words(fmt::format("one after the other: {:.1f} ms", 1e3 * whole));
  page.down(kLine);
  for (int layer = 0; layer < t.layers; ++layer) {
    const double begin_s = layer * layer_s, middle_s = begin_s + t.compute_s;
    draw_part(begin_s, middle_s, false, layer);
    draw_part(middle_s, begin_s + layer_s, true, layer);
  }
  page.down(kBar + 12);
  page.words(fmt::format("overlapped: {:.1f} ms; if all communication were hidden: {:.1f} ms",
                         1e3 * overlapped_s(t, 1), 1e3 * t.bound_s()));
  page.down(kLine);
  for (const bool communication : {false, true}) {
    page.words(communication ? "communication" : "computing");
    for (const OverlapSpan& span : overlap_trace(t, 1))
      if (span.communication == communication)
        draw_part(span.begin_s, span.end_s, communication, span.first_layer);
    page.down(kBar + 4);
  }
  page.down(8);
  page.draw_key(colour(0), "computing");
  page.draw_key(colour(1), "communication");
  return std::move(page).finish();
}

}  // namespace anyccl::cli
