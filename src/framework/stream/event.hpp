#pragma once
// Events mark places in the work of streams. A stream records them; threads and other streams wait
// for them.

#include <chrono>
#include <memory>
#include <mutex>

#include "anyccl/status.hpp"
#include "base/condition.hpp"

namespace anyccl {

class HostStream;

/// A place in a stream's work, which the stream reaches once. Any thread.
class Moment {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Moment(std::weak_ptr<const HostStream> stream) : stream_(std::move(stream)) {}
  /// The stream has come to it; `so_far` is what became of its work until here.
  void reach(const Status& so_far);
  bool reached() const;
  /// Returns when it is reached, with what became of the work before it.
  Status wait() const;
  /// Whether it was reached before `time` has passed.
  bool wait_for(std::chrono::milliseconds time) const;
  /// Only after it is reached.
  Clock::time_point time() const;

 private:
  void note_wait() const;  // see HostStream::note_wait()

  const std::weak_ptr<const HostStream> stream_;
  mutable std::mutex mutex_;
  mutable Condition changed_;
  bool reached_ = false;
  Clock::time_point time_;
  Status so_far_;
};

/// Remembers the moment it was last recorded at; see anycclEventRecord. Any thread.
class HostEvent {
 public:
  HostEvent();
  /// Ok, or why it cannot be used: it belongs to the parent of this process.
  Status check() const;

  Status record(HostStream& stream);
  /// Null if it was never recorded.
  std::shared_ptr<const Moment> latest() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Moment> latest_;
  std::uint64_t fork_generation_;
};

/// Errors: invalid_usage if one was never recorded, in_progress if one is not reached.
Result<std::chrono::nanoseconds> elapsed(const HostEvent& start, const HostEvent& end);

}  // namespace anyccl
