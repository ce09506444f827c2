#pragma once
// The metrics of a process add up those of its communicators, also of those that have ended.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/records/metrics.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {

/// What all communicators of a process have done so far, also those that have ended, as Prometheus
/// reads it; docs/observe/metrics.md has the names.
///
/// Threads: any.
class ProcessMetrics {
 public:
  /// What there is at a moment.
  struct Now {
    std::vector<CommPtr> comms;
    std::size_t links = 0;  ///< To other processes.
  };
  explicit ProcessMetrics(std::function<Now()> now) : now_(std::move(now)) {}

  /// A communicator has ended.
  void add(const Membership& me, const SpentCalls& calls);
  /// The metrics so far; nothing, if some communicator was busy until `deadline`.
  std::optional<std::string> text(Deadline deadline) const;
  /// From now on write() writes into this folder. False: in this process it does already.
  bool report_in(const std::string& folder);
  /// Best effort; a failure is logged once. Writes nothing before report_in(), in a forked child,
  /// or if a communicator is busy for half a second.
  void write();

 private:
  using Place = std::pair<std::string, int>;  // the name of a communicator, and a rank in it

  const std::function<Now()> now_;
  mutable std::mutex mutex_;
  std::map<Place, SpentCalls> ended_;
  std::string folder_;            // empty: nothing is written
  std::uint64_t generation_ = 0;  // of forks: a child writes nothing of its parent
  std::atomic<bool> has_no_file_{false};
};

/// The metrics of this process, as ProcessMetrics::text() has them.
std::optional<std::string> metrics_text(Deadline deadline);

}  // namespace anyccl
