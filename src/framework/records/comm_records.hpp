#pragma once
// A communicator writes here what its rank does: in its recorder, and in the files that are made of
// that, dumps and traces.

#include <atomic>
#include <functional>
#include <string_view>
#include <vector>

#include "framework/call/recorder.hpp"
#include "framework/collective/execution.hpp"
#include "framework/membership/membership.hpp"
#include "framework/membership/routes.hpp"
#include "framework/records/dump.hpp"

namespace anyccl {

/// What is known of the operations of one rank of a communicator, and the files that show it.
///
/// Threads: the holder of the communicator's progress lock, but where it says any.
class CommRecords {
 public:
  /// Both are borrowed.
  CommRecords(const Membership& me, const Routes& routes)
      : me_(me), routes_(routes), recorder_(me.record_entries, !me.trace_folder.empty()) {}

  Recorder& recorder() { return recorder_; }
  const Recorder& recorder() const { return recorder_; }

  /// Records a collective that has the place `sequence`. `begin`: see Recorder. It is `running`, if
  /// its caller waits for it.
  void add(Execution& execution, const PreparedCall& prepared, std::uint64_t sequence,
           RecordState state, std::uint64_t begin = 0, std::uint8_t stream = 0) {
    if (!recorder_.is_on()) return;
    const bool blocks = state != RecordState::issued, done = execution.done();
    if (done) state = execution.status().ok() ? RecordState::done : RecordState::failed;
    const std::uint64_t number = recorder_.add(prepared.recorded, sequence, state, blocks, begin);
    if (stream != 0) recorder_.set_stream(number, stream);
    if (!done) execution.record_in(recorder_, number);
  }
  /// A thread of the program begins to wait for it. Any thread.
  void note_wait(Operation& operation) const {
    if (recorder_.is_traced()) operation.note_wait(recorder_.clock().ticks());
  }

  /// What the recorder holds now. `waits`: what is open and waits for peers.
  Dump dump(std::string_view reason, std::uint64_t sequence, const Status& failure,
            std::vector<OpenWait> waits) const;
  /// Writes the dump that `make` returns into ANYCCL_DUMP_DIR, if there is one. A file that cannot
  /// be written is no failure of the program: it is logged, once.
  void write_dump(const std::function<Dump()>& make);
  /// Writes the trace of `calls` into ANYCCL_TRACE, in the same way. Any thread.
  void write_trace(const RecordedCalls& calls);
  /// Writes the trace of all that it has recorded, in the same way.
  void write_trace();

 private:
  /// The files that a rank writes unasked.
  struct FileKind {
    const char *name, *variable, *prefix;
    const std::string& folder;
    unsigned bit;  // in failed_files_
  };
  FileKind trace_file() const { return {"trace", "ANYCCL_TRACE", "trace", me_.trace_folder, 2}; }
  void write(const FileKind& kind, const std::function<std::string()>& text);

  const Membership& me_;
  const Routes& routes_;
  Recorder recorder_;
  std::atomic<unsigned> failed_files_{0};  // kinds that could not be written, as was logged
};

/// What `execution` waits for.
OpenWait wait_of(const Execution& execution);
/// What `message` waits for.
OpenWait wait_of(const Operation& message);

}  // namespace anyccl
