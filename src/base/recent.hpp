#pragma once
// Facts about the host that change seldom are kept in a Recent, as creating a communicator asks for
// them several times: quotas of cores, interfaces, cores that are online.

#include <chrono>
#include <mutex>
#include <optional>

namespace anyccl {

/// A value that costs time to find and seldom changes: found anew when what is known is older than
/// a time. Any thread.
template <typename T>
class Recent {
 public:
  using Clock = std::chrono::steady_clock;

  /// What `find()` returns, or has returned `most` ago at the longest.
  template <typename Find>
  T get(Clock::duration most, const Find& find) {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (!value_ || now - found_ > most) {
      value_ = find();
      found_ = now;
    }
    return *value_;
  }
  /// The next get() finds it anew.
  void forget() {
    const std::lock_guard lock(mutex_);
    value_.reset();
  }

 private:
  std::mutex mutex_;
  std::optional<T> value_;
  Clock::time_point found_;
};

}  // namespace anyccl
