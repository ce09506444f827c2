#pragma once
// The state of a process that belongs to no communicator: which communicators, streams and unique
// ids there are, the background thread, the metrics, and the end at exit.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "platform/bootstrap/rendezvous/join.hpp"
#include "runtime/process/metrics.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {

/// The one of this process; a forked child has one of its own.
///
/// Threads: any.
class Process {
 public:
  static Process& get();

  /// `comm` was made by create_over(): it leaves at exit, and dumps and metrics have it.
  void add(const CommPtr& comm);
  std::shared_ptr<HostStream> make_stream();
  BackgroundProgress& progress();
  ProcessMetrics& metrics() { return metrics_; }
  /// From now on the metrics are written into this folder, again and again, and at exit.
  void report_in(const std::string& folder);
  /// Names a call that `rank` has made in another communicator than `id`, and this process has not;
  /// empty if none is known. See CommHost::call_elsewhere().
  std::string call_elsewhere(const bootstrap::Hello& rank, std::string_view id);
  /// From now on the signal asks for dumps of all communicators.
  void dump_at(int signal);
  /// Registers the exit handler of this library, unless that is done: it runs before those that
  /// were registered earlier.
  void prepare_exit();
  bootstrap::UniqueIds& unique_ids() { return unique_ids_; }

 private:
  void leave_at_exit();
  void leave_all();
  ProcessMetrics::Now snapshot();

  std::mutex mutex_;
  std::vector<std::weak_ptr<Comm>> comms_;
  std::size_t most_comms_ = 16;  // With so many, those that have ended are forgotten.
  std::vector<std::weak_ptr<HostStream>> streams_;
  std::uint64_t streams_made_ = 0;
  bootstrap::UniqueIds unique_ids_;
  BackgroundProgress* progress_ = nullptr;
  std::atomic<bool> reports_{false}, dumps_{false};  // see report_in() and dump_at()
  ProcessMetrics metrics_{[this] { return snapshot(); }};
};

}  // namespace anyccl
