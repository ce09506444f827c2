#pragma once
// The C interface and streams keep a call that is prepared once in this form, and start it often.

#include <memory>
#include <span>
#include <vector>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

struct QueuedCollective;

/// The error of a call whose last start is not complete.
Status is_open_still();

/// A call that is checked and planned once, and started many times; its arrays are its own. To
/// start it is to issue it.
///
/// Threads: any. The communicator is borrowed.
class PersistentRequest {
 public:
  /// Prepares a call, which is local. Errors: those of Comm::issue().
  static Result<std::shared_ptr<PersistentRequest>> prepare(Comm& comm, const Call& call);
  explicit PersistentRequest(Comm& comm, const Call& call);

  /// Errors: of a communicator that has failed or ended, or belongs to the parent of this process.
  Status check_alive() const;
  /// Errors: those of Comm::issue(); invalid_usage while the last start is not complete, and after
  /// the end of the communicator.
  Result<std::shared_ptr<Operation>> start(Gate gate = Gate::open);
  /// Starts all of them, which are of one communicator; neighbouring collectives may travel as one,
  /// as in Comm::issue_all(). `gates`: one for each.
  static Comm::IssuedCalls start_all(std::span<PersistentRequest* const> calls,
                                     std::span<const Gate> gates);

 private:
  Status ready();
  /// Issues the collective or message if ready() returns Ok. The caller holds the progress lock.
  Result<std::shared_ptr<Operation>> enqueue(Gate gate);
  bool is_message() const { return kept_.call().is_point_to_point(); }

  Comm& comm_;
  KeptCall kept_;
  HeldOperator op_;  // that it names, of the program; or null
  CallKey key_;
  std::shared_ptr<const PreparedCall> plan_;  // of a collective
  std::uint64_t plan_generation_ = 0;         // see PlanCache::generation(); 0: to be checked
  std::shared_ptr<Operation> last_;           // of the last start, alone or with others
  // The operation, which may run again if nobody else has it any more.
  std::shared_ptr<QueuedCollective> collective_;
  std::shared_ptr<MessageRequest> message_;
  bool is_taken_ = false;  // by a start_all() that is under way
};

}  // namespace anyccl
