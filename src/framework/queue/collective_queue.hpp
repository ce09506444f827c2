#pragma once
// The collectives of a communicator stand in this queue, in the order of their calls.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/fifo.hpp"
#include "base/hash.hpp"
#include "framework/collective/plan_cache.hpp"
#include "framework/diagnosis/diagnosis.hpp"
#include "framework/membership/membership.hpp"
#include "framework/membership/routes.hpp"
#include "framework/queue/queued_collective.hpp"
#include "framework/records/comm_records.hpp"
#include "framework/verification/summary.hpp"

namespace anyccl {

/// The collectives of one rank of a communicator, which run one after the other, in the order of
/// their calls: their places, their plans, the checks of those that are verified, and what they
/// need until they are done.
///
/// A blocking collective that finds nothing else open does not stand in the queue: it runs alone,
/// in an Execution that is used again and again, and allocates nothing.
///
/// Threads: the holder of the communicator's progress lock; any may read what the plans know of
/// operators and configurations.
class CollectiveQueue {
 public:
  /// Everything is borrowed.
  CollectiveQueue(const Membership& me, const Routes& routes, CommRecords& records,
                  Diagnosis& diagnosis);

  PlanCache& plans() { return plans_; }
  const PlanCache& plans() const { return plans_; }
  /// How many collectives were called, with those that verify others; equal on all ranks between
  /// calls.
  std::uint64_t sequence() const { return sequence_; }
  bool empty() const { return collectives_.empty(); }

  /// Whether the arguments of a call make sense, also to what verifies it.
  Status check(const Call& call) {
    Status status = plans_.check(call);
    return status.ok() ? check_verifiable(call) : status;
  }
  Status check_verifiable(const Call& call) {
    return me_.verify.each == 0 ? Status() : method_of(call).status();
  }
  /// Whether `call`, as the next collective, is verified: each N-th of the program is, and checks
  /// are not counted. A barrier, or a call of a single rank, never is.
  bool is_verified_next(const Call& call) const {
    return me_.verify.each != 0 && me_.size > 1 && call.collective != Collective::barrier &&
           (sequence_ - checks_) % me_.verify.each == 0;
  }

  /// Runs a call that is right, while the queue is empty, as far as possible without waiting. The
  /// result is done, or the caller advances it until it is, or gives it to queue_alone().
  Execution& run_alone(const PreparedCall& prepared, const Call& call) {
    Execution& alone = alone_->execution;
    alone.limit(call.timeout);
    const std::uint64_t begin = records_.recorder().begin();
    alone.start(prepared, call, next_position(prepared),
                prepared.scratch_bytes == 0 ? nullptr : scratch(prepared.scratch_bytes));
    // What peers wait for goes first: short calls are recorded when their data is on its way.
    const bool later = prepared.protocol() != Protocol::simple;
    if (!later) records_.add(alone, prepared, sequence_, RecordState::running);
    alone.advance();
    if (later) records_.add(alone, prepared, sequence_, RecordState::running, begin);
    return alone;
  }
  /// What runs alone joins the queue: from now on it is one that was issued, so that what is called
  /// next has a place behind it.
  std::shared_ptr<Operation> queue_alone();

  /// Adds a collective that is right. With a closed gate it only takes its place.
  Result<std::shared_ptr<Operation>> add(const Call& call, const CallKey& key, Gate gate) {
    return add(call, key, gate, nullptr);
  }
  /// Adds one in place of all these, see PlanCache::count_fusible().
  Result<std::shared_ptr<Operation>> add_fused(std::span<const Call* const> calls, Gate gate);
  /// Adds a call by a plan that is still right. `again`: what ran it the last time and runs it
  /// again, if nobody else has it any more; else it is replaced.
  Result<std::shared_ptr<Operation>> add_again(std::shared_ptr<QueuedCollective>& again,
                                               const Call& call, const CallKey& key,
                                               const std::shared_ptr<const PreparedCall>& plan,
                                               Gate gate);
  /// Adds a call whose data goes another way: its ranks only meet, and compare their calls.
  /// `around` lives until the operation is done. Never verified.
  Result<std::shared_ptr<Operation>> add_meeting(const Call& call, const PreparedCall& data,
                                                 std::uint64_t way, AroundCall& around);
  /// Whether a check was added for which no caller waits, since this was asked last.
  bool take_extra() { return std::exchange(has_extra_, false); }

  /// Goes on as far as possible without waiting; `moved` becomes true if anything moved. Errors:
  /// why the communicator fails.
  Status advance(bool& moved);
  /// For a call in which this rank only gives: an error of calls before, or of this one, as far as
  /// peers have come to it. Calls that follow each other fast are not slowed down by more than a
  /// percent.
  Status glance();
  /// The first one, if it has started; else null.
  Execution* running() const {
    return empty() || !collectives_.front()->started ? nullptr : &collectives_.front()->execution;
  }
  /// What runs alone and is not done; null: nothing does.
  const Execution* running_alone() const {
    const Execution& alone = alone_->execution;
    return alone.kind() == 0 || alone.done() ? nullptr : &alone;
  }
  /// From now on the operation has this time limit, and with a check the call that it verifies.
  void limit(Operation& operation, std::chrono::milliseconds time);
  /// How many collectives of the program have completed, in the order of their calls; what is
  /// verified, with its check.
  std::uint64_t count_completed() const;
  /// Completes everything with `why`.
  void end(const Status& why);
  /// Bytes of scratch memory.
  std::size_t memory_bytes() const;

 private:
  /// Returns a collective with its own copy of `call`, but no plan and no place yet.
  std::shared_ptr<QueuedCollective> make(const Call& call) const {
    return std::make_shared<QueuedCollective>(KeptCall(call, me_.rank, me_.size), me_.rank,
                                              routes_);
  }
  /// Position of the next call. Its history makes its publications unreadable for a rank whose
  /// calls before it were others.
  Position next_position(const PreparedCall& prepared) {
    return {++sequence_, std::exchange(history_, mix(history_, prepared.digest))};
  }
  std::byte* scratch(std::size_t bytes);
  void push(const std::shared_ptr<QueuedCollective>& queued, Gate gate);
  /// Calls what is around it first. Its time limit counts from here.
  void start(QueuedCollective& head);
  Result<std::shared_ptr<Operation>> add(const Call& call, const CallKey& key, Gate gate,
                                         std::unique_ptr<FusedCall> fused);
  Result<std::shared_ptr<Operation>> add_verified(const Call& call, const CallKey& key, Gate gate);
  Result<Method> method_of(const Call& call);
  Result<std::shared_ptr<Verification>> verification_of(const Call& call,
                                                        const PreparedCall& prepared,
                                                        const Method& method);

  const Membership& me_;
  const Routes& routes_;
  CommRecords& records_;
  Diagnosis& diagnosis_;
  PlanCache plans_;
  std::uint64_t sequence_ = 0, history_ = 0;  // of the last call
  std::uint64_t checks_ = 0;                  // of the calls, which verify others
  std::uint64_t glanced_ = 0;                 // when glance() looked last
  bool has_extra_ = false;                    // see take_extra()
  std::shared_ptr<QueuedCollective> alone_;   // what runs alone, or ran last
  std::vector<std::byte> scratch_;            // of what runs alone
  Fifo<std::shared_ptr<QueuedCollective>> collectives_;
  std::vector<std::unique_ptr<FusedCall>> spare_fused_;
};

}  // namespace anyccl
