#pragma once
// The runtime makes communicators; the C interface, streams and extensions call them. The sources
// of this class are named by what they do: blocking_call, issuing and ending; the rest is in
// communicator.cpp.

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "framework/communicator/failure.hpp"
#include "framework/communicator/progress_loop.hpp"
#include "framework/diagnosis/diagnosis.hpp"
#include "framework/membership/membership.hpp"
#include "framework/membership/routes.hpp"
#include "framework/message/message_matcher.hpp"
#include "framework/queue/collective_queue.hpp"
#include "framework/records/comm_records.hpp"

namespace anyccl {

/// One rank's end of a communicator: its members, its collectives (CollectiveQueue), its messages
/// (MessageMatcher), what is recorded of them (CommRecords), and its failure. ProgressLoop lets
/// threads wait, and Diagnosis says why what waits may have to fail.
///
/// 1. Collectives run one after the other, in the order of the calls; messages run meanwhile.
/// 2. A blocking collective that finds nothing else open runs alone. Everything else is queued.
///    When another thread has a call to make, what runs alone joins the queue.
/// 3. All state but Failure and the counters of ProgressLoop belongs to the holder of the progress
///    lock.
/// 4. A call that is several collectives keeps the order for itself meanwhile: CallSequence.
/// 5. After a failure nothing moves: open operations complete with the reason, and so do later
///    calls.
///
/// Threads: any.
class Comm final : public std::enable_shared_from_this<Comm>, private ProgressLoop::Work {
 public:
  explicit Comm(Membership membership);
  /// Gives the sums of its calls to the process. Shutdown says goodbye to the peers, not this.
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  Rank rank() const { return me_.rank; }
  int size() const { return me_.size; }
  const Membership& membership() const { return me_; }
  /// Whether it belongs to the parent of this process.
  bool forked() const { return loop_.is_forked(); }
  /// Drives what is open here; for groups of communicators, and for the background thread.
  ProgressLoop& loop() { return loop_; }
  /// How many collectives were called, with those that verify others; equal on all ranks between
  /// calls.
  std::uint64_t sequence() const { return queue_.sequence(); }

  /// A blocking call that does not block for ever: after about `time` it becomes one that was
  /// issued, `rest`, and returns in_progress. Without `rest` it has not begun: another thread is in
  /// a CallSequence.
  struct Handover {
    std::chrono::milliseconds time;
    std::shared_ptr<Operation> rest;
    Deadline deadline;  ///< Set by a call that has to wait: others need not know the time.

    const Deadline& until() {
      if (deadline.is_never()) deadline = Deadline::in(time);
      return deadline;
    }
  };
  /// Runs the call to its end. Errors are those of check_call() and what fails on the way.
  Status run(const Call& call, Handover* handover = nullptr);
  /// Issues all of them, and runs them to their ends; the first error. The caller keeps it alive,
  /// should another thread abort it meanwhile.
  Status run_together(std::span<const Call* const> calls);
  /// Issues it; the arrays of a v-form are copied. With a closed gate it only takes its place.
  /// Errors: in_progress, if another thread is in a CallSequence at `until`.
  Result<std::shared_ptr<Operation>> issue(const Call& call, Gate gate = Gate::open,
                                           const Deadline& until = {});
  using IssuedCalls = std::vector<Result<std::shared_ptr<Operation>>>;
  /// Issues the collectives among the calls, in their order; neighbours that can travel as one do,
  /// see FusedCall, and share an operation. The results are parallel to them. `gates`: of
  /// collectives alone, one for each; none: all are open. An operation has one closed gate if any
  /// of its calls has.
  IssuedCalls issue_all(std::span<const Call* const> calls, std::span<const Gate> gates = {});
  /// From now on the operation has this time limit; 0: that of the communicator.
  Status limit(Operation& operation, std::chrono::milliseconds time);
  /// Opens one gate of an operation that was issued here, and wakes those that make progress; they
  /// start it. Any thread.
  void open(Operation& operation);
  /// For the trace: a thread of the program begins to wait for it. Any thread.
  void note_wait(Operation& operation) const { records_.note_wait(operation.on_host()); }
  /// Returns when the operation is done, with its status; in_progress if it is not at `deadline`.
  /// `noted`: see note_wait().
  Status wait(Operation& operation, Deadline deadline = {}, bool noted = true);
  /// Returns when one of them is done, or the communicator has failed, or at `deadline`.
  void wait_any(std::span<const std::shared_ptr<Operation>> operations, Deadline deadline);
  /// Makes progress once; true if the operation is done.
  bool test(Operation& operation);
  /// Also hears of failures of peers while nothing is open here. For callers whose communicator is
  /// not destroyed meanwhile: the background thread does not look then, as Shutdown takes leave
  /// without the lock.
  void check_peers();
  /// Makes progress for the background thread, see ProgressLoop; without memory for that the
  /// communicator fails.
  bool progress_in_background();
  /// Whether peers may put something here while no thread is in a call. Any thread.
  bool is_listening() const {
    return listens_.load(std::memory_order_relaxed) && !failure_.happened();
  }

  /// Ends all operations, here and at all peers, with `why`. Any thread; never waits for a peer.
  void abort(const Status& why);
  /// Aborts where the program has ended a wait of its own, see Interrupt. Without locks.
  void interrupt() override;
  /// Ok, or why the communicator cannot be used: it has failed, or belongs to the parent of this
  /// process. In a forked child nothing waits and no peer is talked to. Shutdown::finish() does not
  /// return once more a failure that was returned here.
  Status failure() const;
  /// The operators of the program. Any thread, but not in a forked child.
  Operators& operators() { return queue_.plans().operators(); }

 private:
  // Calls of several steps are classes of their own, which hold the progress lock as the functions
  // here do; so are questions from outside.
  friend class BlockingCall;
  friend class CallSequence;
  friend class CommMemory;
  friend class CommReport;
  friend class Meetings;
  friend class OneSidedCalls;
  friend class PersistentRequest;
  friend class Planning;
  friend class Probing;
  friend class Shutdown;
  friend class Survivors;
  friend class WindowRegistry;

  Status ready(const Call& call) { return failure_.happened() ? failure() : queue_.check(call); }
  /// Waits until collectives of this caller may take places. `own`: its time limit; 0: none.
  Status await_turn(ProgressLock& progress_lock, std::chrono::milliseconds own = {},
                    const Deadline& until = {}) {
    return loop_.order().is_kept_by_other()
               ? loop_.await_turn(progress_lock, me_.wait_limits.most_of(own), until)
               : Status();
  }
  IssuedCalls enqueue_collectives(std::span<const Call* const> calls, std::span<const Gate> gates);
  /// Queues a collective, or adds a message to those that are open.
  Result<std::shared_ptr<Operation>> enqueue(const Call& call, const CallKey& key, Gate gate);
  void keep_extra_going();
  void go_on(Gate gate);
  static Status await_device(const Operation& operation);
  bool does_at_once(const Call& call, std::uint32_t poll_budget) {
    const std::uint64_t begin = records_.recorder().begin();
    const bool done = messages_.does_at_once(call, poll_budget);
    if (!done) return false;
    records_.recorder().add(call, RecordState::done,
                            {.position = call.tag, .blocks = true, .began = begin});
    return true;
  }
  /// `in_queues`: as of MessageMatcher.
  std::shared_ptr<MessageRequest> add_message(const Call& call, Gate gate,
                                              std::optional<AroundCall*> in_queues = std::nullopt);
  /// Returns the reason why the operation never will be done, as far as can be seen, for fail(); or
  /// Ok. Writes a dump if its wait was logged as a long one.
  Status check_stalled(Operation& operation, const Execution* collective);
  void fail(const Status& why);
  Status fail_without_memory(const Call& call);

  // As ProgressLoop::Work:
  bool advance() override;
  void diagnose() override;
  void end_wait() override { diagnosis_.show_receive(std::nullopt); }
  bool is_idle() const override { return queue_.empty() && !messages_.waits_for_peers(); }
  bool is_over() const override { return is_idle() && !messages_.will_meet_itself(); }

  Membership me_;
  Routes routes_;
  CommRecords records_;
  MessageMatcher messages_;
  Diagnosis diagnosis_;
  CollectiveQueue queue_;
  Failure failure_;
  ProgressLoop loop_;
  std::vector<std::shared_ptr<MessageRequest>> together_;  // room for run_together()
  std::chrono::steady_clock::time_point probed_;           // when Probing looked for failures last
  std::uint64_t completed_ = 0;                            // when it failed
  std::atomic<std::uint64_t> agreed_{0};                   // see Survivors; with nothing behind it
  std::atomic<bool> gated_{false};                         // streams have used this communicator
  std::atomic<bool> left_{false};                          // see Shutdown
  mutable std::atomic<bool> told_{false};  // some call has returned why the communicator failed
  std::atomic<bool> listens_{false};       // there are windows; written with the progress lock
};

}  // namespace anyccl
