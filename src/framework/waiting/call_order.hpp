#pragma once
// Who may take the next places in the order of a communicator's calls.

#include <atomic>
#include <chrono>
#include <utility>

#include "base/doorbell.hpp"

namespace anyccl {

/// Names the caller of a call: a thread, or the one that it works for.
using CallerId = const void*;
[[gnu::tls_model("initial-exec")]] extern thread_local constinit CallerId caller_of_thread;
inline CallerId caller_here() {
  return caller_of_thread != nullptr ? caller_of_thread : &caller_of_thread;
}

/// While it lives, this thread makes calls as a part of those of `caller`, who waits for it.
class CallsFor {
 public:
  explicit CallsFor(CallerId caller) { caller_of_thread = caller; }
  ~CallsFor() { caller_of_thread = nullptr; }
  CallsFor(const CallsFor&) = delete;
  CallsFor& operator=(const CallsFor&) = delete;
};

/// Knows whose collectives may take the next places in the order of a communicator's calls. A call
/// that is several operations keeps the order for its caller until it has made the last one.
///
/// Threads: the holder of the progress lock, but for sleep_while_kept().
class CallOrder {
 public:
  bool is_kept() const { return keeper() != nullptr; }
  bool is_kept_by_other() const { return is_kept() && keeper() != caller_here(); }
  /// Whether a call keeps it that does not block, so that its caller may wait for a later call.
  bool is_kept_by_job() const { return is_kept() && is_job_; }
  void keep(CallerId caller, bool is_job) {
    keeper_.store(caller, std::memory_order_seq_cst);
    is_job_ = is_job;
  }
  void give_back() {
    keeper_.store(nullptr, std::memory_order_seq_cst);
    doorbell_.ring();
  }
  /// A caller that keeps it lends it to a call that does not block.
  void lend(CallerId job) {
    lender_ = keeper();
    keep(job, true);
  }
  /// The call is over: its lender keeps the order again, unless it has given it back meanwhile.
  void give_back_lent() {
    if (lender_ == nullptr) return give_back();
    keep(std::exchange(lender_, nullptr), false);
  }
  /// The keeper gives it back, or the lender does: then the call that has it goes on.
  void give_back_own() {
    if (std::exchange(lender_, nullptr) == nullptr) give_back();
  }
  /// Without the progress lock. `most`: less than a second.
  void sleep_while_kept(std::chrono::nanoseconds most) {
    doorbell_.sleep_while([this] { return keeper_.load(std::memory_order_seq_cst) != nullptr; },
                          most);
  }

 private:
  CallerId keeper() const { return keeper_.load(std::memory_order_relaxed); }

  std::atomic<CallerId> keeper_{nullptr};  // null: nobody
  bool is_job_ = false;
  CallerId lender_ = nullptr;  // null: the keeper has not borrowed it
  Doorbell doorbell_;
};

}  // namespace anyccl
