#pragma once

#include <atomic>
#include <cstddef>

#include "base/deadline.hpp"

struct anycclComm;

namespace anyccl {

/// While it lives, this thread is in a call with a handle: a thread that ends the communicator meanwhile
/// leaves what the handle has until the call has returned. Two stores, as the other side pays for both
/// (see join_fences()).
///
/// Threads: each one its own.
class InCall {
 public:
  /// `handle`: or null.
  explicit InCall(anycclComm* handle);
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

  /// Calls in calls, as of a group's end.
  static constexpr std::size_t kDeepest = 4;

 private:
  anycclComm* handle_;
};

/// After `open` of the handle has become false: waits until no other thread is in a call that may have seen
/// it true. False: one still is.
bool await_calls(const anycclComm& handle, Deadline deadline);

}  // namespace anyccl
