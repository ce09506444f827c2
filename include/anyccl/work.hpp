#pragma once
// Operations under way (anyccl.hpp includes this).

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "anyccl/anyccl.h"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/types.hpp"

namespace anyccl {

namespace detail {
/// As the C interface counts them, but from 0 to 0x7fffffff, which are 24 days.
inline unsigned milliseconds(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kLongest{0x7fffffff};
  return static_cast<unsigned>(std::clamp(time, std::chrono::milliseconds(0), kLongest).count());
}
}  // namespace detail

/// An operation that was issued. Dropping it does not stop it; its buffers belong to it until it is
/// complete. A default one is no operation, and nothing can be asked of it: a call in a group()
/// gives such a Work. Any thread.
class [[nodiscard]] Work {
 public:
  Work() = default;
  explicit Work(anycclWork_t handle) : handle_(handle) {}
  Work(Work&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Work& operator=(Work&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() { static_cast<void>(anycclWorkFree(handle_)); }

  /// Whether it is complete; makes progress, never blocks. Errors: those of the operation.
  Result<bool> test() {
    int done = 0;
    const Status status = detail::status_of(anycclWorkTest(handle_, &done));
    if (!status.ok()) return status;
    return done != 0;
  }
  /// Returns when it is complete, with what became of it.
  Status wait() { return detail::status_of(anycclWorkWait(handle_)); }
  /// wait(), but in_progress if it is not complete after `milliseconds`: it goes on then.
  Status wait_for(unsigned milliseconds) {
    return detail::status_of(anycclWorkWaitFor(handle_, milliseconds));
  }
  Status wait_for(std::chrono::milliseconds time) { return wait_for(detail::milliseconds(time)); }
  /// In place of its call's time limit; 0: the communicator's. Counts from now, or for a collective
  /// from its turn, if that is later. When it is over the operation fails, and the communicator.
  Status limit(unsigned milliseconds) {
    return detail::status_of(anycclWorkLimit(handle_, milliseconds));
  }
  Status limit(std::chrono::milliseconds time) { return limit(detail::milliseconds(time)); }
  /// Calls function() once, when it is complete or has failed: now, or soon after from the
  /// library's background thread: it must be short, and not throw. Never if this fails. See
  /// anycclWorkNotify.
  template <typename Function>
  Status notify(Function function) {
    auto kept = std::make_unique<Function>(std::move(function));
    const auto call = [](void* data) noexcept {
      (*std::unique_ptr<Function>(static_cast<Function*>(data)))();
    };
    const Status status = detail::status_of(anycclWorkNotify(handle_, call, kept.get()));
    if (status.ok()) static_cast<void>(kept.release());
    return status;
  }
  /// Whom the message of a complete recv came from.
  Result<Rank> source() const {
    int rank = 0;
    const Status status = detail::status_of(anycclWorkSource(handle_, &rank));
    if (!status.ok()) return status;
    return Rank{rank};
  }
  anycclWork_t handle() const { return handle_; }

 private:
  anycclWork_t handle_ = nullptr;
};

/// Waits for what an operation returned: `Status s = wait(comm.all_reduce(...))`.
inline Status wait(Result<Work> work) {
  return work.ok() ? work->wait() : work.status();
}

}  // namespace anyccl
