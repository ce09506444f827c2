#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/bell.hpp"
#include "base/deadline.hpp"
#include "base/fork.hpp"
#include "framework/execution.hpp"
#include "framework/messages.hpp"
#include "framework/token.hpp"
#include "framework/tuner.hpp"
#include "framework/waiter.hpp"
#include "platform/bootstrap/secret.hpp"

namespace anyccl {

/// Slots per bank, and bytes of the staging ring, of every communicator of `size` ranks.
std::uint32_t slots_for(int size);
/// Bytes that a slot holds itself: 2 KiB in small communicators, less in large ones.
std::size_t line_bytes_for(int size);
inline constexpr std::size_t kRingBytes = std::size_t{4} << 20;

/// Everything a communicator is made of.
struct Membership {
  Rank rank{0};
  int size = 1;
  std::vector<int> host_of;        ///< Host of each rank, numbered from 0 in order of appearance.
  std::vector<std::string> names;  ///< "rank 2 (host n7, pid 4711)", for messages.
  std::vector<std::unique_ptr<Transport>> transports;
  Secret secret;                        ///< Known to the members only.
  Preferences preferences;              ///< Of algorithms.
  std::size_t line_bytes = kLineBytes;  ///< Publications of at most so many bytes lie in a slot.
  bool only_lines = false;    ///< ANYCCL_PROTO=LL, LL128: in pieces that fit a slot where they can.
  bool network = false;       ///< Some pair of ranks, not only this one's, talks over a network.
  bool crowded_here = false;  ///< More ranks on this host than it has cores.
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
  /// How many collectives were called; equal on all ranks between calls.
  std::uint64_t sequence() const { return sequence_; }

  /// Runs the call to its end. Errors are those of check_call() and what fails on the way.
  Status run(const Call& call);
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
  /// Sleeps shortly, after progress() found nothing for long.
  void rest();
  /// Of the background thread: the same where nobody waits; else they do nothing and sleep.
  bool progress_in_background();
  void rest_in_background();
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

  /// From now on algorithms are chosen by these. All ranks do this between the same operations,
  /// with equal preferences.
  void prefer(Preferences preferences);
  /// "all_reduce/two_shot Simple shm": how the last collective was done.
  std::string last_plan();

 private:
  static constexpr std::size_t kCacheEntries = 64;
  struct Queued;
  struct Cached {
    CallKey key;
    std::shared_ptr<const Prepared> prepared;
  };

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
  Result<std::shared_ptr<Task>> enqueue(const Call& call, const CallKey& key, Gate gate);
  bool progress_locked();
  void take(Token& token) {
    if (!token.try_take()) queue_for(token);
  }
  void queue_for(Token& token);
  void sleep_shortly(Token& token);
  void rouse();
  void examine_locked();
  Status news();
  Status trouble(Task& task, const Execution* collective);
  Status compare_calls(const CallRecord& mine);
  Status lateness(const Task& task, const Execution* collective) const;
  Status no_sender();
  bool may_still_be_explained(const Status& problem);
  void fail_locked(const Status& why);
  bool idle() const { return collectives_.empty() && !messages_.waits_for_peers(); }
  std::byte* scratch(std::size_t bytes);

  Membership me_;
  std::vector<Transport*> transports_, route_;
  std::uint32_t slots_;
  std::uint64_t sequence_ = 0;
  std::vector<Cached> cache_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<Shape> program_shapes_;  // parallel to programs_
  std::shared_ptr<Queued> alone_;      // of the blocking call, when nothing else is open
  std::vector<std::byte> scratch_;
  Operators operators_;
  CallKey last_key_;  // of last_, if it can be used again
  std::shared_ptr<const Prepared> last_;

  std::deque<std::shared_ptr<Queued>> collectives_;
  Messages messages_;

  std::atomic<bool> token_{false};
  std::atomic<int> wanted_{0};        // threads in queue_for()
  std::atomic<int> waiting_{0};       // threads in wait()
  std::atomic<bool> quiet_{false};    // see is_quiet()
  std::atomic<bool> resting_{false};  // the background thread sleeps and holds the token
  std::atomic<bool> asleep_{false};   // who holds the token sleeps in the last transport
  std::atomic<bool> gated_{false};    // streams have used this communicator
  Bell bell_;                         // who waits without the token looks again
  std::atomic<bool> failed_{false}, abort_asked_{false};
  mutable std::mutex failure_mutex_;
  Status failure_;
  Deadline puzzled_until_;
  std::uint64_t fork_generation_;
};

}  // namespace anyccl
