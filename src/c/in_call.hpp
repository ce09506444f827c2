#pragma once
// Each thread writes down the handles that its calls use, so that a thread that destroys one waits
// for them.

#include <array>
#include <atomic>
#include <cstddef>

#include "base/deadline.hpp"

struct anycclComm;

namespace anyccl {

/// The handles that one thread is in calls with.
struct Calls {
  /// Calls in calls, as of a group's end.
  static constexpr std::size_t kDeepest = 4;

  explicit Calls(bool fenced) : is_fenced(fenced) {}
  std::array<std::atomic<const anycclComm*>, kDeepest> handles{};
  std::size_t depth = 0;  // the thread's own
  const bool is_fenced;   // else its stores are fences
  std::atomic<bool> has_thread{true};
  Calls* next = nullptr;  // set once, before others see it
};
/// The calls of this thread; null before its first one. The pointer is in the space that is set
/// aside at start, so that asking costs one load.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit Calls* calls_here;
/// Sets calls_here until this thread ends, to what an ended thread has left, or else to new memory.
/// The first call of a thread calls it.
Calls& take_calls();

/// While it lives, this thread is in a call with a handle: a thread that ends the communicator
/// meanwhile leaves what the handle has until the call has returned. Two stores, as the other side
/// pays for both (see join_fences()).
///
/// Threads: each one its own.
class InCall {
 public:
  /// `handle`: or null. Does not look at its `open`: the caller does so afterwards.
  explicit InCall(anycclComm* handle) : handle_(handle) {
    if (handle == nullptr) return;
    Calls& here = calls_here != nullptr ? *calls_here : take_calls();
    if (here.depth == Calls::kDeepest) {
      handle_ = nullptr;  // never comes: the library calls the program at most twice within a call
      return;
    }
    std::atomic<const anycclComm*>& place = here.handles[here.depth++];
    // With the load of `open` behind it, pairs with await_calls(): one of the two sees the other.
    if (here.is_fenced) {
      place.store(handle, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      place.store(handle, std::memory_order_seq_cst);
    }
  }
  inline ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  anycclComm* handle_;
};

/// After `open` of the handle has become false: waits until no other thread is in a call that may
/// have seen it true. False: one still is.
bool await_calls(const anycclComm& handle, Deadline deadline);

}  // namespace anyccl
