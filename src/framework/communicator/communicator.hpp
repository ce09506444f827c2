#pragma once
// The runtime makes communicators; the C interface, streams and extensions call them. The sources
// of this class are named by what they do: issuing, persistent, probing, verifying, windows,
// dumping and ending; the rest is in communicator.cpp.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/fifo.hpp"
#include "base/fork.hpp"
#include "base/hash.hpp"
#include "framework/collective/plan_cache.hpp"
#include "framework/communicator/diagnosis.hpp"
#include "framework/communicator/dump.hpp"
#include "framework/communicator/failure.hpp"
#include "framework/communicator/membership.hpp"
#include "framework/communicator/metrics.hpp"
#include "framework/communicator/progress_loop.hpp"
#include "framework/communicator/routes.hpp"
#include "framework/message/message_matcher.hpp"
#include "framework/verification/summary.hpp"

namespace anyccl {

class Verification;

/// One rank's end of a communicator: its members, the queue of its collectives, its messages, and
/// its failure. PlanCache turns calls into what runs, ProgressLoop lets threads wait, and Diagnosis
/// says why what waits may have to fail.
///
/// 1. Collectives run one after the other, in the order of the calls; messages run meanwhile.
/// 2. A blocking collective that finds nothing else open runs in `alone_`, which allocates nothing.
///    Everything else is queued. When another thread has a call to make, `alone_` joins the queue.
/// 3. All state but Failure and the counters of ProgressLoop belongs to the holder of the owner
///    progress lock.
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
  bool forked() const { return anyccl::fork_generation() != fork_generation_; }
  /// See ProgressLoop.
  bool is_oversubscribed() const { return loop_.is_oversubscribed(); }
  /// How many collectives were called, with those that verify others; equal on all ranks between
  /// calls.
  std::uint64_t sequence() const { return sequence_; }

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
  /// A call that is checked and planned once, and started many times; its arrays are its own.
  /// Preparing is local, errors are those of issue(). Starting it is issuing it; invalid_usage
  /// while the last start is not complete, and after the end of the communicator.
  struct Persistent;
  Result<std::shared_ptr<Persistent>> prepare(const Call& call);
  Result<std::shared_ptr<Operation>> start(Persistent& call, Gate gate = Gate::open);
  /// All of them; neighbouring collectives may travel as one, as in issue_all().
  IssuedCalls start_all(std::span<Persistent* const> calls);
  /// From now on the operation has this time limit; 0: none.
  Status limit(Operation& operation, std::chrono::milliseconds time);
  /// Opens the gate of an operation that was issued here. Any thread.
  void open(Operation& operation);
  /// For the trace: a thread of the program begins to wait for it. Any thread.
  void note_wait(Operation& operation) const {
    if (recorder_.is_traced()) operation.note_wait(recorder_.clock().now());
  }
  /// Returns when the operation is done, with its status; in_progress if it is not at `deadline`.
  /// `noted`: see note_wait().
  Status wait(Operation& operation, Deadline deadline = {}, bool noted = true);
  /// Returns when one of them is done, or the communicator has failed, or at `deadline`.
  void wait_any(std::span<const std::shared_ptr<Operation>> operations, Deadline deadline);
  /// Makes progress once; true if the operation is done.
  bool test(Operation& operation);
  /// Tells of the message that a receive from `source`, which may be kAnySource, with `tag` would
  /// get if it were called now; waits for it, and in_progress at `deadline`. Errors: of arguments,
  /// and as a receive.
  Status probe(Rank source, std::uint32_t tag, Deadline deadline, MessageFacts& found);
  /// Tells of such a message without waiting; false: there is none yet.
  Result<bool> probe_now(Rank source, std::uint32_t tag, MessageFacts& found);
  /// Issues the receive of a message that a probe has told of; null if it is not there any more, as
  /// another thread has received it. `out` has room for it.
  Result<std::shared_ptr<Operation>> receive_found(const MessageFacts& message, std::byte* out);
  /// For groups of communicators, and for the background thread: see ProgressLoop.
  bool progress() { return !forked() && loop_.progress(); }
  /// Also hears of failures of peers while nothing is open here. For callers whose communicator is
  /// not destroyed meanwhile: the background thread does not look then, as leave() takes no lock.
  void check_peers();
  WaitPolicy& wait_policy() { return loop_.wait_policy(); }
  void sleep_briefly() {
    if (!forked()) loop_.sleep_briefly();
  }
  bool progress_in_background();
  void sleep_in_background(std::chrono::nanoseconds most) {
    if (!forked()) loop_.sleep_in_background(most);
  }
  bool sleep_beside_waiters(std::chrono::nanoseconds most, const std::atomic<bool>& called) {
    return !forked() && loop_.sleep_beside_waiters(most, called);
  }
  void wake_background() { loop_.wake_background(); }
  bool is_quiet() const { return loop_.is_quiet(); }
  void expect_progress() { loop_.expect(); }
  /// For a caller that waits for these peers elsewhere: ok, or why one will not come, as far as is
  /// known here.
  Status absence(std::span<const Rank> wanted);

  // --- windows; see OneSided ---
  /// Collective: `bytes` at `at` become a window, into which peers put; the result is its number.
  /// `problem`: of this rank's arguments, which all ranks hear of.
  Result<std::uint32_t> register_window(std::byte* at, std::size_t bytes, const Status& problem);
  /// Collective: returns when all puts into windows that were called before have landed here.
  Status deregister_window(std::uint32_t window);
  /// Runs it to its end.
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
  /// How many collectives of the program have completed here, in the order of their calls; what is
  /// verified, with its check.
  std::uint64_t completed();
  /// After a failure: whether `peer` has taken leave, and so will not carry on. Any thread.
  bool has_left(Rank peer);
  /// "operation 3, barrier, of communicator tp", if `peer` has made that call, and this rank has
  /// not; empty: as far as is known it has not, or another thread is at work here.
  std::string call_without_me(Rank peer);
  /// Ranks that are left after a failure have agreed that so many have completed on all of them.
  /// Any thread.
  void note_agreed(std::uint64_t completed) { agreed_.store(completed, std::memory_order_relaxed); }
  std::uint64_t agreed() const { return agreed_.load(std::memory_order_relaxed); }
  /// Ok, or why the communicator cannot be used: it has failed, or belongs to the parent of this
  /// process. In a forked child nothing waits and no peer is talked to.
  Status failure() const;
  /// Waits until everything issued is complete, then says goodbye to the peers. What is open at
  /// `deadline` fails with timeout: receives of which nothing has come here alone, anything else on
  /// all ranks.
  Status finish(Deadline deadline = {});
  /// Says goodbye without waiting for anything: at exit, or after a failure.
  void leave(Deadline deadline = Deadline::never());
  /// At exit: the same, after stream workers have been kept from going on here. `deadline`: for
  /// what a worker is doing at the moment.
  void leave_for_exit(Deadline deadline);

  /// The operators of the program. Any thread, but not in a forked child.
  Operators& operators() { return plans_.operators(); }
  /// A check that run() cannot do for a slice: whether the whole call makes sense.
  Status check_whole(Call call) const;

  /// From now on algorithms are chosen by these. All ranks do this between the same operations,
  /// with equal policies.
  void set_policy(TunerPolicy policy);
  /// Microseconds that the call should take, by the tuner's model. Errors: of its arguments.
  Result<double> predict(const Call& call);
  /// Bytes that this rank holds for it: what peers can map, buffers and scratch; not plans.
  std::size_t memory_bytes();
  /// See Transport; `unread` also if another thread is at work here. Any thread, also after
  /// leave().
  GivenBack give_back();
  /// The number that calls with such a configuration carry; see CallSettingsTable. Any thread.
  Result<std::uint8_t> settings_of_call(const CallSettingsTable::Text& text) {
    return plans_.settings().number_of(text);
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
  friend class CallSequence;
  struct Queued;

  std::shared_ptr<Queued> make_queued(const Call& call) const;
  std::shared_ptr<Operation> queue_alone();
  Status wait_or_hand_over(ProgressLock& progress_lock, const std::shared_ptr<Operation>& operation,
                           Handover* handover);
  /// How often a blocking receive looks before it waits like others.
  std::uint32_t poll_budget() const { return is_oversubscribed() ? 1 : 32; }
  Status run_message(ProgressLock& progress_lock, const Call& call, std::shared_ptr<Comm>& alive,
                     Handover* handover);
  Status ready(const Call& call) {
    if (failure_.happened()) return failure();
    Status status = plans_.check(call);
    return status.ok() ? check_verifiable(call) : status;
  }
  /// Position of the next call. Its history makes its publications unreadable for a rank whose
  /// calls before it were others.
  Position next_position(const PreparedCall& prepared) {
    return {++sequence_, std::exchange(history_, mix(history_, prepared.digest))};
  }
  IssuedCalls enqueue_collectives(std::span<const Call* const> calls, std::span<const Gate> gates);
  Result<std::shared_ptr<Operation>> enqueue_fused(std::span<const Call* const> calls, Gate gate);
  Result<std::shared_ptr<Operation>> enqueue(const Call& call, const CallKey& key, Gate gate,
                                             std::unique_ptr<FusedCall> fused = nullptr);
  /// Whether the next collective is one that is verified, and this may be it. Calls of programs are
  /// counted.
  bool is_verified_next(const Call& call) const {
    return me_.verify != 0 && me_.size > 1 && call.collective != Collective::barrier &&
           (sequence_ - checks_) % me_.verify == 0;
  }
  Status check_verifiable(const Call& call) {
    return me_.verify == 0 ? Status() : method_of(call).status();
  }
  Result<Method> method_of(const Call& call);
  Result<std::shared_ptr<Operation>> enqueue_verified(const Call& call, const CallKey& key,
                                                      Gate gate);
  Result<std::shared_ptr<Verification>> verification_of(const Call& call,
                                                        const PreparedCall& prepared,
                                                        const Method& method);
  bool does_at_once(const Call& call, std::uint32_t poll_budget) {
    const std::uint64_t begin = recorder_.begin();
    const bool done = messages_.does_at_once(call, poll_budget);
    if (!done) return false;
    recorder_.add(call, RecordState::done, {.position = call.tag, .blocks = true, .began = begin});
    return true;
  }
  Dump dump_now(std::string_view reason) const;
  void dump_by_itself(std::string_view reason);
  void trace_by_itself();
  /// Files that a rank writes unasked.
  struct FileKind {
    const char *name, *variable, *prefix;
    const std::string& folder;
    unsigned bit;  // in has_no_file_
  };
  FileKind trace_file() const { return {"trace", "ANYCCL_TRACE", "trace", me_.trace_folder, 2}; }
  template <typename Text>
  void write_by_itself(const FileKind& kind, const Text& text);
  std::shared_ptr<MessageRequest> add_message(const Call& call, Gate gate);
  std::shared_ptr<Operation> start(const OneSidedCall& call, Gate gate, std::uint32_t poll_budget);
  /// Records the call that has taken next_position(). `begin`: see Recorder.
  void record(Execution& execution, const PreparedCall& prepared, RecordState state,
              std::uint64_t begin = 0, std::uint8_t stream = 0) {
    if (!recorder_.is_on()) return;
    const bool blocks = state != RecordState::issued, done = execution.done();
    if (done) state = execution.status().ok() ? RecordState::done : RecordState::failed;
    const std::uint64_t number = recorder_.add(prepared.recorded, sequence_, state, blocks, begin);
    if (stream != 0) recorder_.set_stream(number, stream);
    if (!done) execution.record_in(recorder_, number);
  }
  Status ready_to_start(Persistent& call);
  Result<std::shared_ptr<Operation>> enqueue_again(Persistent& call, Gate gate);
  Status check_probe(Rank source) const;
  Result<bool> look_for(Rank source, std::uint32_t tag, MessageFacts& found);
  Status check_stalled(Operation& operation, const Execution* collective);
  void fail(const Status& why);
  /// Where this rank only gives: an error of calls before, or of this one, as far as peers have
  /// come to it.
  Status glance();
  /// A mismatch of calls that no call here has returned.
  std::uint64_t count_completed() const;
  std::size_t memory_here() const;
  Status run_locked(ProgressLock& progress_lock, const Call& call, std::shared_ptr<Comm>& alive,
                    Handover* handover);
  Status fail_without_memory(const Call& call);
  Status finish_late();
  void show_receive();
  Status agree_on_window(std::uint32_t window, std::size_t bytes, const Status& problem);
  Status close_window(std::uint32_t window);
  std::byte* scratch(std::size_t bytes);

  // As ProgressLoop::Work:
  bool advance() override;
  void diagnose() override;
  void end_wait() override;
  bool is_idle() const override { return collectives_.empty() && !messages_.waits_for_peers(); }
  bool is_over() const override { return is_idle() && !messages_.will_meet_itself(); }

  Membership me_;
  Routes routes_;
  std::uint64_t sequence_ = 0, history_ = 0;  // of the last call
  std::uint64_t completed_ = 0;               // when it failed
  std::uint64_t checks_ = 0;                  // of the calls, which verify others
  std::atomic<std::uint64_t> agreed_{0};      // see note_agreed(); a number, with nothing behind it
  PlanCache plans_;
  std::shared_ptr<Queued> alone_;  // of the blocking call, when nothing else is open
  std::vector<std::byte> scratch_;
  Fifo<std::shared_ptr<Queued>> collectives_;
  std::vector<std::unique_ptr<FusedCall>> spare_fused_;
  MessageMatcher messages_;
  std::vector<std::shared_ptr<MessageRequest>> together_;  // room for run_together()
  Failure failure_;
  Recorder recorder_;
  ProgressLoop loop_;
  Diagnosis diagnosis_;
  std::uint64_t glanced_ = 0;                     // when glance() looked last
  std::optional<Rank> shown_receive_;             // see show_receive()
  std::chrono::steady_clock::time_point probed_;  // when probe_now() looked for failures last
  std::atomic<unsigned> has_no_file_{0};          // kinds that could not be written, as was logged
  std::atomic<bool> gated_{false};                // streams have used this communicator
  std::atomic<bool> left_{false};                 // see leave()
  mutable std::atomic<bool> told_{false};  // some call has returned why the communicator failed
  std::atomic<bool> listens_{false};       // there are windows; written with the progress lock
  std::uint64_t fork_generation_;
};

}  // namespace anyccl
