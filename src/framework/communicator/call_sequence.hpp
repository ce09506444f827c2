#pragma once
// A call that is several operations, such as a split, uses this to keep them together in the order
// of the calls of its communicator.

#include <memory>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// Several operations of a communicator that are one place in the order of its calls. While it
/// lives, collectives of other callers wait; where it belongs to a call that does not block, they
/// are refused.
///
/// Threads: one at a time; only the one that began or took it makes its operations.
class CallSequence {
 public:
  /// Waits until no other caller is in one; null: this caller is, and goes on with that, or the
  /// communicator has failed. Errors: in_progress at `deadline`; timeout; invalid_usage while a
  /// call that does not block is in one.
  static Result<std::shared_ptr<CallSequence>> begin(Comm& comm, const Deadline& deadline = {});
  /// Begins one for a thread that will take() it: in a sequence of this thread, a part of that.
  static Result<std::shared_ptr<CallSequence>> begin_for_job(Comm& comm);
  CallSequence(const CallSequence&) = delete;
  CallSequence& operator=(const CallSequence&) = delete;
  ~CallSequence() { end(); }

  /// From now on it is this thread's.
  void take() { give_to(caller_here()); }
  /// It is no thread's until one takes it.
  void hand_over() { give_to(this); }
  void end();

 private:
  explicit CallSequence(Comm& comm) : comm_(comm.shared_from_this()) {}
  void give_to(CallerId caller);
  void borrow();
  Status keep(CallerId caller, bool is_job, const Deadline& deadline);

  std::shared_ptr<Comm> comm_;  // null: it is over
  bool has_begun_ = false;
  bool is_part_ = false;  // of the sequence of another caller
};

}  // namespace anyccl
