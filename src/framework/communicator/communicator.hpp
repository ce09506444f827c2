#pragma once
// The runtime makes communicators; the C interface, streams and extensions call them. The sources
// of this class are named by what they do: issuing, one_sided_calls and ending; the rest is in
// communicator.cpp.

#include <memory>
#include <optional>
#include <span>
#include <string>
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
#include "framework/records/dump.hpp"
#include "framework/records/metrics.hpp"

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
  const ProgressLoop& loop() const { return loop_; }
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
  Result<std::shared_ptr<Operation>> issue(const Call& call, Gate gate = Gate::open);
  using IssuedCalls = std::vector<Result<std::shared_ptr<Operation>>>;
  /// Issues the collectives among the calls, in their order; neighbours that can travel as one do,
  /// see FusedCall, and share an operation. The results are parallel to them. `gates`: of
  /// collectives alone, one for each; none: all are open. An operation has one closed gate if any
  /// of its calls has.
  IssuedCalls issue_all(std::span<const Call* const> calls, std::span<const Gate> gates = {});
  /// From now on the operation has this time limit; 0: none.
  Status limit(Operation& operation, std::chrono::milliseconds time);
  /// Opens the gate of an operation that was issued here. Any thread.
  void open(Operation& operation);
  /// For the trace: a thread of the program begins to wait for it. Any thread.
  void note_wait(Operation& operation) const { records_.note_wait(operation); }
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
  /// Runs a put, a signal, or a wait for signals to its end; see WindowRegistry for windows.
  Status run(const OneSidedCall& call);
  Result<std::shared_ptr<Operation>> issue(const OneSidedCall& call, Gate gate = Gate::open);
  /// Whether peers may put something here while no thread is in a call. Any thread.
  bool is_listening() const {
    return listens_.load(std::memory_order_relaxed) && !failure_.happened();
  }

  /// Ends all operations, here and at all peers, with `why`. Any thread; never waits for a peer.
  void abort(const Status& why);
  /// Aborts where the program has ended a wait of its own, see Interrupt. Without locks.
  void interrupt() override;
  /// Ranks that are left after a failure have agreed that so many have completed on all of them.
  /// Any thread.
  void note_agreed(std::uint64_t completed) { agreed_.store(completed, std::memory_order_relaxed); }
  std::uint64_t agreed() const { return agreed_.load(std::memory_order_relaxed); }
  /// Ok, or why the communicator cannot be used: it has failed, or belongs to the parent of this
  /// process. In a forked child nothing waits and no peer is talked to.
  Status failure() const;
  /// The operators of the program. Any thread, but not in a forked child.
  Operators& operators() { return queue_.plans().operators(); }
  /// A check that run() cannot do for a slice: whether the whole call makes sense.
  Status check_whole(Call call) const;

  /// From now on algorithms are chosen by these. All ranks do this between the same operations,
  /// with equal policies.
  void set_policy(TunerPolicy policy);
  /// Microseconds that the call should take, by the tuner's model. Errors: of its arguments.
  Result<double> predict(const Call& call);
  /// Bytes that this rank holds for it: what peers can map, buffers and scratch; not plans.
  std::size_t memory_bytes();
  /// See Transport; `unread` also if another thread is at work here. Any thread, also after the
  /// goodbye.
  GivenBack give_back();
  /// The number that calls with such a configuration carry; see CallSettingsTable. Any thread.
  Result<std::uint8_t> settings_of_call(const CallSettingsTable::Text& text) {
    return queue_.plans().settings().number_of(text);
  }
  /// "all_reduce/two_shot Simple shm": how the last collective was done. Without shared memory "-"
  /// in place of a protocol that nobody asked for.
  std::string last_plan();
  /// What this rank knows of its operations now, for a file as docs/observe/blame.md has it; with
  /// ANYCCL_TRACE its trace is written, too. Any thread. Errors: invalid_usage, in a forked child.
  Result<Dump> dump();
  /// Writes it into ANYCCL_DUMP_DIR, unless another thread keeps the progress lock until
  /// `deadline`. Any thread.
  void dump_on_signal(Deadline deadline);
  /// What was done here until now. Any thread; nothing in a forked child. Null: another thread has
  /// kept the progress lock until `deadline`.
  std::optional<Metrics> metrics(Deadline deadline = {});

 private:
  // What consists of several steps is a class of its own, which holds the progress lock as the
  // functions here do.
  friend class CallSequence;
  friend class PersistentRequest;
  friend class Probing;
  friend class Shutdown;
  friend class Survivors;
  friend class WindowRegistry;

  Status wait_or_hand_over(ProgressLock& progress_lock, const std::shared_ptr<Operation>& operation,
                           Handover* handover);
  /// How often a blocking receive looks before it waits like others.
  std::uint32_t poll_budget() const { return loop_.is_oversubscribed() ? 1 : 32; }
  Status run_message(ProgressLock& progress_lock, const Call& call, std::shared_ptr<Comm>& alive,
                     Handover* handover);
  Status run_locked(ProgressLock& progress_lock, const Call& call, std::shared_ptr<Comm>& alive,
                    Handover* handover);
  Status finish_alone(ProgressLock& progress_lock, Execution& alone, const Call& call,
                      std::shared_ptr<Comm>& alive, Handover* handover);
  Status ready(const Call& call) { return failure_.happened() ? failure() : queue_.check(call); }
  /// Waits until collectives of this caller may take places. `own`: its time limit; 0: none.
  Status await_turn(ProgressLock& progress_lock, std::chrono::milliseconds own = {}) {
    return loop_.order().is_kept_by_other()
               ? loop_.await_turn(progress_lock, me_.wait_limits.most_of(own))
               : Status();
  }
  IssuedCalls enqueue_collectives(std::span<const Call* const> calls, std::span<const Gate> gates);
  Result<std::shared_ptr<Operation>> enqueue(const Call& call, const CallKey& key, Gate gate);
  void keep_extra_going();
  void go_on(Gate gate);
  bool does_at_once(const Call& call, std::uint32_t poll_budget) {
    const std::uint64_t begin = records_.recorder().begin();
    const bool done = messages_.does_at_once(call, poll_budget);
    if (!done) return false;
    records_.recorder().add(call, RecordState::done,
                            {.position = call.tag, .blocks = true, .began = begin});
    return true;
  }
  std::shared_ptr<MessageRequest> add_message(const Call& call, Gate gate);
  std::shared_ptr<Operation> start(const OneSidedCall& call, Gate gate, std::uint32_t poll_budget);
  Status check_stalled(Operation& operation, const Execution* collective);
  void show_receive();
  Dump dump_now(std::string_view reason) const;
  std::size_t memory_here() const;
  /// See Survivors. The caller holds the progress lock.
  std::uint64_t count_completed() const {
    return failure_.happened() ? completed_ : queue_.count_completed();
  }
  void fail(const Status& why);
  Status glance();
  Status fail_without_memory(const Call& call);

  // As ProgressLoop::Work:
  bool advance() override;
  void diagnose() override;
  void end_wait() override;
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
  std::optional<Rank> shown_receive_;                      // see show_receive()
  std::chrono::steady_clock::time_point probed_;           // when Probing looked for failures last
  std::uint64_t completed_ = 0;                            // when it failed
  std::atomic<std::uint64_t> agreed_{0};   // see note_agreed(); with nothing behind it
  std::atomic<bool> gated_{false};         // streams have used this communicator
  std::atomic<bool> left_{false};          // see Shutdown
  mutable std::atomic<bool> told_{false};  // some call has returned why the communicator failed
  std::atomic<bool> listens_{false};       // there are windows; written with the progress lock
};

}  // namespace anyccl
