// What a rank writes of its operations: dumps, on demand, after a failure and in long waits; and
// traces, when the communicator ends.

#include <algorithm>
#include <array>
#include <exception>

#include "base/log.hpp"
#include "base/whole_file.hpp"
#include "framework/communicator/communicator.hpp"
#include "framework/communicator/dump.hpp"
#include "framework/communicator/queued_collective.hpp"
#include "framework/communicator/trace.hpp"

namespace anyccl {
namespace {

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

}  // namespace

/// The caller holds the progress lock.
Dump Comm::dump_now(std::string_view reason) const {
  Dump dump{.me = me_,
            .reason = reason,
            .sequence = sequence_,
            .waits = {},
            .failure = failure_.why(),
            .time_ns = TickClock::monotonic_ns(),
            .peers = peers_of(me_, routes_),
            .calls = recorder_.copy()};
  if (alone_->execution.kind() != 0 && !alone_->execution.done())
    dump.waits.push_back(wait_of(alone_->execution));
  if (!collectives_.empty() && collectives_.front()->started)
    dump.waits.push_back(wait_of(collectives_.front()->execution));
  for (const std::shared_ptr<Operation>& message : messages_.waiting())
    if (!message->done()) dump.waits.push_back(wait_of(*message));
  return dump;
}

/// What cannot be written is no failure of the program.
template <typename Text>
void Comm::write_by_itself(const FileKind& kind, const Text& text) try {
  if (kind.folder.empty()) return;
  const Status written = write_whole_file(
      fmt::format("{}/{}-{}-{}.json", kind.folder, kind.prefix, me_.id, index(me_.rank)), text());
  if (written.ok()) return;
  if ((has_no_file_.fetch_or(kind.bit, std::memory_order_relaxed) & kind.bit) != 0) return;
  log(LogLevel::warn, "{}: no {}, see {}: {}", me_.label, kind.name, kind.variable,
      written.message());
} catch (const std::exception& problem) {
  log(LogLevel::warn, "{}: no {}: {}", me_.label, kind.name, problem.what());
}

/// The caller holds the progress lock.
void Comm::dump_by_itself(std::string_view reason) {
  write_by_itself({"dump", "ANYCCL_DUMP_DIR", "anyccl", me_.dump_folder, 1},
                  [&] { return text_of(std::array{dump_now(reason)}); });
}

/// The caller holds the progress lock.
void Comm::trace_by_itself() {
  write_by_itself(trace_file(), [&] { return trace_text(me_, recorder_.copy()); });
}

Result<Dump> Comm::dump() {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  Dump dump = dump_now("call");
  progress_lock.unlock();  // to put long traces into words takes seconds
  write_by_itself(trace_file(), [&] { return trace_text(me_, dump.calls); });
  return dump;
}

void Comm::dump_on_signal(Deadline deadline) {
  if (forked()) return;
  ProgressLock progress_lock = loop_.progress_lock();
  if (loop_.lock(progress_lock, deadline)) dump_by_itself("signal");
}

std::optional<Metrics> Comm::metrics(Deadline deadline) {
  if (forked()) return Metrics();
  ProgressLock progress_lock = loop_.progress_lock();
  if (!loop_.lock(progress_lock, deadline)) return std::nullopt;
  const bool has_failed = failure_.happened();
  return Metrics{SpentCalls(recorder_), has_failed ? completed_ : count_completed(), memory_here(),
                 has_failed};
}

Comm::~Comm() {
  if (me_.around != nullptr && !forked()) me_.around->note_ended(me_, SpentCalls(recorder_));
}

}  // namespace anyccl
