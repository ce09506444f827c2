#pragma once
// Programs, signals and the metrics of the process ask here what a communicator has done and does.

#include <optional>
#include <string_view>

#include "base/deadline.hpp"
#include "framework/communicator/communicator.hpp"
#include "framework/records/dump.hpp"
#include "framework/records/metrics.hpp"

namespace anyccl {

/// The reports of this rank on the operations of a communicator: its dump, and its metrics.
///
/// Threads: any. The communicator is borrowed.
class CommReport {
 public:
  explicit CommReport(Comm& comm) : comm_(comm) {}

  /// All that this rank knows of its operations now, for a file as docs/observe/blame.md has it;
  /// with ANYCCL_TRACE its trace is written, too. Errors: invalid_usage, in a forked child.
  Result<Dump> dump();
  /// Writes it into ANYCCL_DUMP_DIR, unless another thread keeps the progress lock until
  /// `deadline`.
  void dump_on_signal(Deadline deadline);
  /// The dump of this moment, because of `reason`; for the holder of the progress lock.
  Dump dump_here(std::string_view reason) const;
  /// The sums of all calls here until now; none in a forked child. Null: another thread has kept
  /// the progress lock until `deadline`.
  std::optional<Metrics> metrics(Deadline deadline = {});

 private:
  Comm& comm_;
};

}  // namespace anyccl
