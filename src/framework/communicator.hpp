#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bell.hpp"
#include "base/deadline.hpp"
#include "base/fork.hpp"
#include "base/hash.hpp"
#include "framework/execution.hpp"
#include "framework/messages.hpp"
#include "framework/recent_calls.hpp"
#include "framework/token.hpp"
#include "framework/tuner.hpp"
#include "framework/waiter.hpp"
#include "platform/bootstrap/secret.hpp"
#include "platform/probe/census.hpp"

namespace anyccl {

/// Slots per bank of every communicator of `size` ranks.
std::uint32_t slots_for(int size);
/// Bytes that a slot holds itself: 2 KiB in small communicators, less in large ones.
std::size_t line_bytes_for(int size);
/// Of each rank's staging ring. On one host less with more ranks, because all rings together take
/// room from the last-level cache.
std::size_t ring_bytes_for(int size, bool network);

/// Everything a communicator is made of.
struct Membership {
  Rank rank{0};
  int size = 1;
  std::vector<int> near_of;        ///< As Places has it.
  std::vector<std::string> names;  ///< "rank 2 (host n7, pid 4711)", for messages.
  std::vector<std::unique_ptr<Transport>> transports;
  Secret secret;                        ///< Known to the members only.
  Preferences preferences;              ///< Of algorithms.
  std::size_t line_bytes = kLineBytes;  ///< Publications of at most so many bytes lie in a slot.
  bool only_lines = false;  ///< ANYCCL_PROTO=LL, LL128: in pieces that fit a slot where they can.
  bool network = false;     ///< Some pair of ranks, not only this one's, talks over a network.
  int ranks_per_core = 1;   ///< As Places has it.
  int cores_each = 1;       ///< The same, of this rank.
  std::size_t ring_bytes = 0;  ///< Of the staging ring.
  Census::Stay stay;           ///< On the list of this host's ranks.
};

/// One rank's end of a communicator.
///
/// Threads: any. Whoever holds the owner token makes progress for all, and gives it to those who
/// have another call to make; tasks tell when they are done.
class Comm : public std::enable_shared_from_this<Comm> {
 public:
  explicit Comm(Membership membership);

  Rank rank() const { return me_.rank; }
  int size() const { return me_.size; }
  const Membership& membership() const { return me_; }
  /// Whether the host has fewer cores than threads that wait: `threads` in each rank of this
  /// communicator, or, as far as known, the ranks of all jobs. Then who waits gives its core away
  /// at once.
  bool is_crowded(int threads = 1) const {
    return threads > me_.cores_each || census_.is_crowded();
  }
  /// How many collectives were called; equal on all ranks between calls.
  std::uint64_t sequence() const { return sequence_; }

  /// Runs the call to its end. Errors are those of check_call() and what fails on the way.
  Status run(const Call& call);
  /// Issues all of them, and runs them to their ends; the first error. The caller keeps it alive,
  /// should another thread abort it meanwhile.
  Status run_together(std::span<const Call* const> calls);
  /// Issues it; the arrays of a v-form are copied. With a closed gate it only takes its place.
  Result<std::shared_ptr<Task>> issue(const Call& call, Gate gate = Gate::open);
  /// From now on the task has this time limit; 0: none.
  Status limit(Task& task, std::chrono::milliseconds time);
  /// Opens the gate of a task that was issued here. Any thread.
  void open(Task& task);
  /// Returns when the task is done, with its status; in_progress if it is not at `deadline`.
  Status wait(Task& task, Deadline deadline = {});
  /// Makes progress once; true if the task is done.
  bool test(Task& task);
  /// For groups of communicators: makes progress if nobody else does; true if anything moved.
  bool progress();
  /// Looks for trouble: a task that waits may have to fail.
  void examine();
  /// For who waits for these peers elsewhere: ok, or why one will not come, as far as is known
  /// here.
  Status absence(std::span<const Rank> wanted);
  /// Sleeps shortly, after progress() found nothing for long.
  void rest();
  /// Of the background thread: the same where nobody waits; else they do nothing and sleep.
  /// `most`: how long, if nothing is missed meanwhile.
  bool progress_in_background();
  void rest_in_background(std::chrono::nanoseconds most);
  /// Whoever sleeps here looks again.
  void rouse();
  /// Whether the last progress_in_background() left nothing to do, and expect_progress() was not
  /// called since.
  bool is_quiet() const {
    return quiet_.load(std::memory_order_acquire) || failed_.load(std::memory_order_acquire);
  }
  void expect_progress() { quiet_.store(false, std::memory_order_release); }

  /// Ends all operations, here and at all peers, with `why`. Any thread; never waits for a peer.
  void abort(const Status& why);
  /// Ok, or why the communicator cannot be used: it has failed, or belongs to the parent of this
  /// process. In a forked child nothing waits and no peer is talked to.
  Status failure() const;
  /// Waits until everything issued is complete, then says goodbye to the peers.
  void finish();
  /// Says goodbye without waiting for anything: at exit, or after a failure.
  void leave();
  /// At exit: the same, after stream workers have been kept from going on here. `deadline`: for
  /// what a worker is doing at the moment.
  void leave_for_exit(Deadline deadline);

  /// Operators of this communicator; see anycclRedOpCreate. Any thread.
  Result<ReduceOp> add_operator(const Operator& op);
  Status remove_operator(ReduceOp op);

  /// Slice `thread` of `call`, an all_reduce that `threads` threads of each rank do together; see
  /// anycclAllReducePart. Threads share nothing that any of them writes.
  Status run_part(Call call, int thread, int threads);
  /// How many threads may do so.
  int most_threads() const { return static_cast<int>(parts_.size()) + 1; }
  /// For one thread more: a communicator of the same ranks. Not while a thread is in run_part().
  void add_part(std::shared_ptr<Comm> part);
  /// After an error of run_part(): if it was no error of arguments, the slices of all threads, here
  /// and at the peers, fail with it. Whether it was so.
  bool end_parts(const Status& why);

  /// From now on algorithms are chosen by these. All ranks do this between the same operations,
  /// with equal preferences.
  void prefer(Preferences preferences);
  /// "all_reduce/two_shot Simple shm": how the last collective was done.
  std::string last_plan();

 private:
  struct Queued;

  bool forked() const { return anyccl::fork_generation() != fork_generation_; }
  /// `last_` is of a call with the same key. False: check_call() says whether and what is wrong.
  bool has_buffers(const Call& call) const {
    return (call.input != nullptr || last_->input_bytes == 0) &&
           (call.output != nullptr || last_->output_bytes == 0) &&
           (call.in_place(me_.rank) ||
            !overlap(call.input, last_->input_bytes, call.output, last_->output_bytes));
  }
  struct Extent {
    std::size_t input, output;  // bytes; 0 if not used
  };
  Extent extent(const Call& call) const;
  Status check_call(const Call& call) const;
  Status check_arguments(const Call& call) const;
  Status choose_kernels(const Call& call, Prepared& prepared) const;
  Status prepare(const Call& call, const CallKey& key);
  Result<std::shared_ptr<const Prepared>> prepare_fresh(const Call& call);
  Result<const Program*> program(const Algorithm& algorithm, const Call& call, bool in_place);
  std::shared_ptr<Queued> make_queued(const Call& call) const;
  Status wait_with_others(Token& token);
  Status wait(Token& token, Task& task, Deadline deadline = {});
  /// Of a blocking receive, before it waits like others.
  std::uint32_t looks() const { return is_crowded() ? 1 : 32; }
  Status run_message(Token& token, const Call& call, std::shared_ptr<Comm>& alive);
  /// Sleeps must not be much longer than the time limits that are used here.
  void note_limit(std::chrono::milliseconds limit) {
    if (limit.count() > 0 && limit < 10 * Waiter::kLongNap) short_limits_ = true;
  }
  Status ready(const Call& call) const {
    return failed_.load(std::memory_order_acquire) ? failure() : check_call(call);
  }
  /// Position of the next call. Its history makes its publications unreadable for a rank whose
  /// calls before it were others.
  Position next_position(const Prepared& prepared) {
    return {++sequence_, std::exchange(history_, mix(history_, prepared.digest))};
  }
  Result<std::shared_ptr<Task>> enqueue(const Call& call, const CallKey& key, Gate gate);
  bool progress_locked();
  void take(Token& token) {
    if (!token.try_take()) queue_for(token);
  }
  void queue_for(Token& token);
  void sleep_shortly(Token& token, std::chrono::nanoseconds most, Execution* alone = nullptr);
  void examine_locked();
  Status news();
  Status trouble(Task& task, const Execution* collective);
  Status compare_calls(const CallRecord& mine);
  Status compare_earlier_calls(Rank peer, std::uint64_t sequence);
  Status lateness(const Task& task, const Execution* collective) const;
  Status no_sender();
  bool may_still_be_explained(const Status& problem);
  void fail_locked(const Status& why);
  Status check_team(int thread, int threads) const;
  Status check_whole(Call call) const;
  std::vector<std::shared_ptr<Comm>> parts() const;
  void abort_alone(const Status& why);
  bool idle() const { return collectives_.empty() && !messages_.waits_for_peers(); }
  std::byte* scratch(std::size_t bytes);

  Membership me_;
  Census& census_;
  std::vector<Transport*> transports_, route_;
  std::uint32_t slots_;
  std::uint64_t sequence_ = 0, history_ = 0;  // of the last call
  RecentCalls recent_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<Shape> program_shapes_;  // parallel to programs_
  std::shared_ptr<Queued> alone_;      // of the blocking call, when nothing else is open
  std::vector<std::byte> scratch_;
  Operators operators_;
  CallKey last_key_;  // of last_, if it can be used again
  std::shared_ptr<const Prepared> last_;

  std::deque<std::shared_ptr<Queued>> collectives_;
  Messages messages_;
  std::vector<std::shared_ptr<Transfer>> together_;  // room for run_together()

  std::atomic<bool> token_{false};
  std::atomic<int> wanted_{0};        // threads in queue_for()
  std::atomic<int> waiting_{0};       // threads in wait()
  std::atomic<bool> quiet_{false};    // see is_quiet()
  std::atomic<bool> resting_{false};  // the background thread sleeps and holds the token
  std::atomic<bool> asleep_{false};   // who holds the token sleeps in the last transport
  std::atomic<bool> nudged_{false};   // rouse() was called since somebody slept
  bool short_limits_ = false;         // see note_limit(); with the token
  std::atomic<bool> gated_{false};    // streams have used this communicator
  Bell bell_;                         // who waits without the token looks again
  std::atomic<bool> failed_{false}, abort_asked_{false};
  mutable std::mutex failure_mutex_;
  Status failure_;
  std::vector<std::shared_ptr<Comm>> parts_;  // of threads 1, 2, ...; abort() reads it, too
  Deadline puzzled_until_;
  std::uint64_t fork_generation_;
};

}  // namespace anyccl
