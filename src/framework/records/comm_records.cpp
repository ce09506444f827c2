#include "framework/records/comm_records.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "base/log.hpp"
#include "base/whole_file.hpp"
#include "framework/records/trace.hpp"

namespace anyccl {

OpenWait wait_of(const Execution& execution) {
  OpenWait wait{execution.is_recorded() ? execution.record_number() : 0,
                execution.sequence(),
                execution.place(),
                {}};
  execution.awaited(wait.awaited);
  std::sort(wait.awaited.begin(), wait.awaited.end());
  wait.awaited.erase(std::unique(wait.awaited.begin(), wait.awaited.end()), wait.awaited.end());
  return wait;
}

OpenWait wait_of(const Operation& message) {
  OpenWait wait{message.is_recorded() ? message.record_number() : 0, 0, message.what(), {}};
  message.awaited(wait.awaited);
  return wait;
}

Dump CommRecords::dump(std::string_view reason, std::uint64_t sequence, const Status& failure,
                       std::vector<OpenWait> waits) const {
  return {.me = me_,
          .reason = reason,
          .sequence = sequence,
          .waits = std::move(waits),
          .failure = failure,
          .time_ns = TickClock::monotonic_ns(),
          .peers = peers_of(me_, routes_),
          .calls = recorder_.copy()};
}

void CommRecords::write(const FileKind& kind, const std::function<std::string()>& text) try {
  if (kind.folder.empty()) return;
  const Status written = write_whole_file(
      fmt::format("{}/{}-{}-{}.json", kind.folder, kind.prefix, me_.id, index(me_.rank)), text());
  if (written.ok()) return;
  if ((failed_files_.fetch_or(kind.bit, std::memory_order_relaxed) & kind.bit) != 0) return;
  log(LogLevel::warn, "{}: no {}, see {}: {}", me_.label, kind.name, kind.variable,
      written.message());
} catch (const std::exception& problem) {
  log(LogLevel::warn, "{}: no {}: {}", me_.label, kind.name, problem.what());
}

void CommRecords::write_dump(const std::function<Dump()>& make) {
  write({"dump", "ANYCCL_DUMP_DIR", "anyccl", me_.dump_folder, 1},
        [&] { return text_of(std::array{make()}); });
}

void CommRecords::write_trace(const RecordedCalls& calls) {
  write(trace_file(), [&] { return trace_text(me_, calls); });
}

void CommRecords::write_trace() {
  write(trace_file(), [&] { return trace_text(me_, recorder_.copy()); });
}

}  // namespace anyccl
