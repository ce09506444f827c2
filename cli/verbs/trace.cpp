#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/whole_file.hpp"
#include "trace/merge.hpp"
#include "trace/summary.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

struct Flags {
  std::vector<std::string> paths;
  std::string output;  // empty: a summary is asked for
  bool json = false;
};

int refuse_traces(const Status& why) {
  fmt::print(stderr, "anyccl: trace: {}\n", why.message());
  return kUsageError;
}

/// Writes the timeline to `output`, or prints the summary if that is empty.
int run(const Flags& flags) {
  Result<std::vector<RankTrace>> traces = read_traces(flags.paths);
  if (!traces.ok()) return refuse_traces(traces.status());
  const std::vector<HostClock> clocks = align(*traces);
  if (flags.output.empty()) {
    const TraceSummary summary = summarize(*traces);
    fmt::print("{}", flags.json ? json_of(summary, clocks) : text_of(summary, clocks));
    return 0;
  }
  const Status written = write_whole_file(flags.output, merged_timeline(*traces, clocks));
  return written.ok() ? 0 : refuse_traces(written);
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const merge =
      app.add_subcommand("merge", "Put the traces of all ranks into one timeline for Perfetto");
  merge->add_option("-o,--output", flags->output, "File to write")->required();
  CLI::App* const summary = app.add_subcommand(
      "summary", "Say how much time went into communication, and which ranks came late");
  for (CLI::App* const verb : {merge, summary})
    verb->add_option("traces", flags->paths, "Traces of the ranks, or folders with them")
        ->required();
  summary->add_flag("--json", flags->json, "Print JSON: times in nanoseconds, shares from 0 to 1");
  app.require_subcommand(1);
  app.footer(
      "Each rank writes its trace when a communicator ends, if ANYCCL_TRACE names a folder. Give\n"
      "those of all ranks and communicators. https://ui.perfetto.dev shows what merge writes.\n\n"
      "Example: ANYCCL_TRACE=/tmp/traces anyccl run -n 4 -- ./train\n"
      "         anyccl trace merge /tmp/traces -o timeline.json\n"
      "         anyccl trace summary /tmp/traces");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_trace{"trace", "Show what all ranks did when, from their traces", declare};

}  // namespace anyccl::cli
