#pragma once
// The time limit of a call that waits in slices until another thread's sequence is over: the
// library begins its limit anew in each slice.

#include <chrono>
#include <optional>

#include "anyccl/anyccl.h"

namespace anyccl::bindings {

/// How long a call may wait for the end of another thread's sequence.
class SequenceLimit {
 public:
  static constexpr const char* kText =
      "another thread was in a call of several operations until the time limit";

  /// After a slice of about `slice_ms` in which the call has not begun: whether its time is over.
  /// `timeout_ms`: the limit of the call; 0: that of `comm`.
  bool is_over(anycclComm_t comm, unsigned timeout_ms, unsigned slice_ms) {
    const auto now = std::chrono::steady_clock::now();
    if (!begin_) begin_ = now - std::chrono::milliseconds(slice_ms);
    unsigned limit = timeout_ms;
    if (limit == 0) static_cast<void>(anycclCommGetTimeout(comm, &limit));
    return limit != 0 && limit != ANYCCL_NO_TIMEOUT &&
           now - *begin_ >= std::chrono::milliseconds(limit);
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> begin_;
};

}  // namespace anyccl::bindings
