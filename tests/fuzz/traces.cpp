// Traces of ranks, as `anyccl trace` reads them: one a line.

#include "trace/traces.hpp"

#include "input.hpp"
#include "trace/merge.hpp"
#include "trace/summary.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  std::vector<cli::RankTrace> traces;
  while (!input.empty()) {
    auto trace = cli::parse_trace(input.line());
    if (trace.ok()) traces.push_back(*std::move(trace));
  }
  if (traces.empty()) return;  // an error of the reader
  const std::vector<cli::HostClock> clocks = cli::align(traces);
  const cli::TraceSummary summary = cli::summarize(traces);
  static_cast<void>(cli::merged_timeline(traces, clocks));
  static_cast<void>(cli::text_of(summary, clocks));
  static_cast<void>(cli::json_of(summary, clocks));
}

}  // namespace anyccl::fuzz
