#include "runtime/process/metrics.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <tuple>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/whole_file.hpp"
#include "framework/communicator/comm_report.hpp"

namespace anyccl {
namespace {

/// In quotes, as the format wants it.
std::string quoted_label(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\n') {
      quoted += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

/// One series of each operation, algorithm and protocol in each place.
struct Counter {
  const char *name, *help;
  double (*value)(const SpentCalls::Row& row);
};
constexpr Counter kCounters[] = {
    {"anyccl_operations_total", "Operations that were called.",
     [](const SpentCalls::Row& row) { return static_cast<double>(row.calls); }},
    {"anyccl_operation_errors_total", "Operations that have failed.",
     [](const SpentCalls::Row& row) { return static_cast<double>(row.failed); }},
    {"anyccl_operation_bytes_total", "Bytes of the vector or the block of the operations.",
     [](const SpentCalls::Row& row) { return static_cast<double>(row.bytes); }},
    {"anyccl_operation_seconds_total", "Time from their turn to their end.",
     [](const SpentCalls::Row& row) { return row.seconds; }}};

std::string header(const char* name, const char* help, const char* type) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

}  // namespace

void ProcessMetrics::add(const Membership& me, const SpentCalls& calls) {
  constexpr std::size_t kMost = 256;  // programs may give each communicator another name
  const std::lock_guard lock(mutex_);
  Place place{me.name, index(me.rank)};
  if (ended_.size() >= kMost && !ended_.contains(place)) place.first.clear();
  ended_[place].add(calls);
}

bool ProcessMetrics::report_in(const std::string& folder) {
  watch_forks();
  const std::lock_guard lock(mutex_);
  if (folder_ == folder && generation_ == fork_generation()) return false;
  folder_ = folder;
  generation_ = fork_generation();
  return true;
}

void ProcessMetrics::write() {
  constexpr std::chrono::milliseconds kMost{500};  // what is busy for longer is reported next time
  std::string folder;
  {
    const std::lock_guard lock(mutex_);
    if (folder_.empty() || generation_ != fork_generation()) return;
    folder = folder_;
  }
  const auto now = text(Deadline::in(kMost));
  if (!now) return;
  const Status written =
      write_whole_file(fmt::format("{}/anyccl-{}.prom", folder, ::getpid()), *now);
  if (!written.ok() && !has_no_file_.exchange(true, std::memory_order_relaxed))
    log(LogLevel::warn, "no metrics, see ANYCCL_METRICS: {}", written.message());
}

std::optional<std::string> ProcessMetrics::text(Deadline deadline) const {
  const Now now = now_();
  std::map<Place, SpentCalls> calls;
  {
    const std::lock_guard lock(mutex_);
    calls = ended_;
  }
  std::size_t failed = 0, memory = 0;
  for (const CommPtr& comm : now.comms) {
    const std::optional<Metrics> metrics = CommReport(*comm).metrics(deadline);
    if (!metrics) return std::nullopt;
    calls[{comm->membership().name, index(comm->rank())}].add(metrics->calls);
    failed += metrics->has_failed ? 1 : 0;
    memory += metrics->memory_bytes;
  }
  const int pid = ::getpid();
  std::string text;
  for (const Counter& counter : kCounters) {
    text += header(counter.name, counter.help, "counter");
    for (const auto& [place, spent] : calls)
      for (const SpentCalls::Row& row : spent.rows())
        text += fmt::format(
            "{}{{pid=\"{}\",communicator={},rank=\"{}\",operation={},algorithm={},protocol={}}} "
            "{}\n",
            counter.name, pid, quoted_label(place.first), place.second, quoted_label(row.operation),
            quoted_label(row.algorithm), quoted_label(row.protocol), counter.value(row));
  }
  const std::tuple<const char*, const char*, std::size_t> gauges[] = {
      {"anyccl_communicators", "Communicators that there are.", now.comms.size()},
      {"anyccl_failed_communicators", "Of them, those that have failed.", failed},
      {"anyccl_memory_bytes", "What they hold of the host's memory.", memory},
      {"anyccl_links", "Links to other processes.", now.links}};
  for (const auto& [name, help, value] : gauges)
    text += header(name, help, "gauge") + fmt::format("{}{{pid=\"{}\"}} {}\n", name, pid, value);
  return text;
}

}  // namespace anyccl
