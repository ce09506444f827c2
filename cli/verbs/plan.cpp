#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "plan/measured_links.hpp"
#include "plan/read.hpp"
#include "plan/report.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

struct Flags {
  std::string model, cluster = "h100", schedule = "1f1b", recompute = "selective",
                     precision = "bf16", attention = "causal", file;
  Parallelism layout;
  std::string calibration;
  std::vector<std::string> measured = {"between"};
  std::optional<int> devices;
  std::vector<double> layer_ms;
  double latency_ms = 0;
  bool search = false, json = false, svg = false;
};

/// Data parallelism gets the rest of the devices. The layout is not checked here.
Result<Parallelism> layout_of(const Flags& flags, const Cluster& cluster) {
  Parallelism p = flags.layout;
  ANYCCL_TRY(p.schedule, parse_schedule(flags.schedule));
  p.recompute = flags.recompute == "none"   ? Recompute::none
                : flags.recompute == "full" ? Recompute::full
                                            : Recompute::selective;
  p.precision = flags.precision == "fp8" ? Precision::fp8 : Precision::bf16;
  p.attention = flags.attention == "full" ? Attention::full : Attention::causal;
  p.data = static_cast<int>(cluster.devices / (std::int64_t{p.tensor} * p.context * p.pipeline));
  return p;
}

template <typename Report>
std::string written(const Report& report, const Flags& flags) {
  return flags.json ? to_json(report) : flags.svg ? to_svg(report) : to_text(report);
}

/// Returns the report on the measured times of --layer-ms, as text, JSON or SVG.
Result<std::string> plan_layers(const Flags& flags, const Model& model, const Cluster& cluster) {
  const LayerTimes times{model.layers, flags.layer_ms[0] / 1e3, flags.layer_ms[1] / 1e3,
                         flags.latency_ms / 1e3};
  for (const double ms : flags.layer_ms)
    if (!std::isfinite(ms) || ms <= 0)
      return error(Code::invalid_argument, "--layer-ms: both times must be numbers above 0");
  if (!(times.latency_s >= 0 && times.latency_s <= times.communication_s))
    return error(Code::invalid_argument,
                 "--latency-ms {}: it is a part of the {} ms of communication", flags.latency_ms,
                 flags.layer_ms[1]);
  return written(LayerReport{model, cluster, times}, flags);
}

/// Returns the report that the flags ask for, as text, JSON or SVG.
Result<std::string> plan(const Flags& flags) {
  constexpr std::size_t kBest = 10;
  ANYCCL_TRY(const Model model, find_model(flags.model));
  ANYCCL_TRY(Cluster cluster, find_cluster(flags.cluster));
  cluster.devices = flags.devices.value_or(cluster.devices);
  if (!flags.calibration.empty()) {
    ANYCCL_TRY(const std::string text, read_whole_file(flags.calibration));
    ANYCCL_CHECK(use_measured_links(text, flags.calibration, flags.measured, cluster));
  }
  if (!flags.layer_ms.empty()) return plan_layers(flags, model, cluster);
  ANYCCL_TRY(Parallelism layout, layout_of(flags, cluster));
  if (flags.search) {
    LayoutSearch found = search_layouts(model, cluster, layout, kBest);
    if (found.fitting + found.too_large == 0)
      return error(Code::invalid_argument, "there is no layout of {} for {} devices and --batch {}",
                   model.name, cluster.devices, layout.batch);
    return written(SearchReport{model, cluster, std::move(found)}, flags);
  }
  ANYCCL_CHECK(check(layout, model, cluster));
  return written(report_step(model, cluster, layout), flags);
}

Status write_out(const std::string& text, const std::string& file) {
  if (file.empty()) {
    fmt::print("{}", text);
    return {};
  }
  std::ofstream out(file);
  out << text;
  out.close();
  return out ? Status() : system_error(errno, "write {}", file);
}

int run(const Flags& flags) {
  const Result<std::string> text = plan(flags);
  const Status status = text.ok() ? write_out(*text, flags.file) : text.status();
  if (status.ok()) return 0;
  fmt::print(stderr, "anyccl: plan: {}\n", status.message());
  return status.code() == Code::invalid_argument ? kUsageError : 1;
}

void declare_layout(CLI::App& app, Flags& flags) {
  const CLI::Range degree(1, 1 << 20);
  Parallelism& p = flags.layout;
  app.add_option("--tp", p.tensor, "Tensor parallel devices")->check(degree)->capture_default_str();
  app.add_option("--cp", p.context, "Context parallel devices")
      ->check(degree)
      ->capture_default_str();
  app.add_option("--pp", p.pipeline, "Stages of the pipeline")
      ->check(degree)
      ->capture_default_str();
  app.add_option("--ep", p.expert, "Devices that experts are spread over")
      ->check(degree)
      ->capture_default_str();
  app.add_option("--zero", p.zero, "ZeRO stage of the data parallel devices, the rest; 3 is FSDP")
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  app.add_flag("--sp", p.sequence_parallel, "Sequence parallel, over the tensor parallel devices");
  app.add_option("--schedule", flags.schedule,
                 "gpipe, 1f1b, interleaved:CHUNKS, 2bw, zb or dualpipe")
      ->capture_default_str();
  app.add_option("--micro", p.micro_batch, "Sequences of a micro-batch")
      ->check(degree)
      ->capture_default_str();
  app.add_option("--recompute", flags.recompute, "none, selective (attention) or full")
      ->check(CLI::IsMember({"none", "selective", "full"}))
      ->capture_default_str();
}

void declare_step(CLI::App& app, Flags& flags) {
  const CLI::Range positive(1, 1 << 24);
  Parallelism& p = flags.layout;
  p.batch = 512;
  p.sequence = 4096;
  app.add_option("--batch", p.batch, "Sequences of a step")->check(positive)->capture_default_str();
  app.add_option("--seq", p.sequence, "Tokens of a sequence")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--precision", flags.precision, "bf16 or fp8, of matrix products")
      ->check(CLI::IsMember({"bf16", "fp8"}))
      ->capture_default_str();
  app.add_option("--attention", flags.attention,
                 "causal, or full as Megatron counts it: what FLOPs are")
      ->check(CLI::IsMember({"causal", "full"}))
      ->capture_default_str();
  app.add_option("--gradient-bytes", p.gradient_bytes, "Bytes of a gradient")
      ->check(CLI::IsMember({2, 4}))
      ->capture_default_str();
  app.add_flag("--overlap", p.overlap, "Tensor, context and expert communication beside computing");
  app.add_option("--imbalance", p.imbalance, "Tokens of the busiest expert over the mean")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("-m,--model", flags->model, "Model: a preset or a file (docs/lab/plan.md)")
      ->required();
  app.add_option("-c,--cluster", flags->cluster, "Cluster: a preset or a file")
      ->capture_default_str();
  app.add_option("-n,--devices", flags->devices, "Number of devices; default: the cluster's")
      ->check(CLI::Range(1, 1 << 24));
  CLI::Option* const calibration = app.add_option(
      "--calibration", flags->calibration,
      "File of anyccl tune --calibrate: its links take the place of those of the cluster");
  app.add_option("--measured", flags->measured,
                 "Which: inside (its shm) or between (its tcp), or both; default: between")
      ->delimiter(',')
      ->needs(calibration)
      ->check(CLI::IsMember({"inside", "between"}));
  declare_layout(app, *flags);
  declare_step(app, *flags);
  CLI::Option* const search =
      app.add_flag("--search", flags->search, "Find the ten fastest layouts");
  app.add_option(
         "--layer-ms", flags->layer_ms,
         "Measured times of a layer, computing and communication, as 10,3: plan their overlap")
      ->delimiter(',')
      ->expected(2)
      ->excludes(search);
  app.add_option("--latency-ms", flags->latency_ms, "The part of that which each call has")
      ->needs("--layer-ms");
  CLI::Option* const json = app.add_flag("--json", flags->json, "Print JSON");
  app.add_flag("--svg", flags->svg, "Draw a picture (SVG)")->excludes(json);
  app.add_option("-o,--output", flags->file, "Write to this file; default: standard output");
  app.footer(
      "Estimates a step of training: bytes and time of each kind of parallelism, memory, pipeline\n"
      "bubble, exposed communication and MFU. Nothing is run. Models: llama3-8b, llama3-70b,\n"
      "llama3-405b, gpt3-175b, mixtral-8x7b, deepseek-v3. Clusters: a100, h100, h800.\n\n"
      "Example: anyccl plan -m llama3-405b -n 16384 --tp 8 --pp 16 --sp --batch 2048 --seq 8192\n"
      "         anyccl plan -m llama3-70b -n 64 --search\n"
      "         anyccl plan -m deepseek-v3 -c h800 --layer-ms 10,3 --latency-ms 0.2");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_plan{"plan", "Estimate a step of training on a cluster", declare};

}  // namespace anyccl::cli
