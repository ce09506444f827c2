#pragma once
// How the threads of a process share a communicator.
//
// 1. One thread at a time makes progress: the holder of the progress lock. It advances everything
//    that is open, for all threads.
// 2. A thread that has a call to make counts itself in wanted_; a thread that only waits for an
//    operation gives the progress lock away then, and waits on the doorbell.
// 3. The holder may sleep in the last transport. Before it does, it stores asleep_ and looks once
//    more at what might end its sleep; a thread that wants something stores that first and then
//    looks at asleep_ (see wake()). All of these are seq_cst, so one of the two sees the other.
// 4. The background thread makes progress only where nobody waits. It sleeps on a doorbell of its
//    own, so that threads that wait do not wake it with each step.

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "base/doorbell.hpp"
#include "base/fork.hpp"
#include "framework/call/operation.hpp"
#include "framework/communicator/failure.hpp"
#include "framework/waiting/backoff.hpp"
#include "framework/waiting/call_order.hpp"
#include "framework/waiting/progress_lock.hpp"
#include "platform/probe/oversubscription.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl {

class ProgressLoop {
 public:
  /// The work that the loop drives. All functions are called by the holder of the progress lock.
  class Work {
   public:
    /// Goes on as far as possible without waiting; true if anything moved.
    virtual bool advance() = 0;
    /// Looks for failures: an operation that waits may have to fail.
    virtual void diagnose() = 0;
    /// A thread that waited does so no more.
    virtual void end_wait() {}
    /// Open operations fail, as the program has ended a wait. Without the progress lock.
    virtual void interrupt() {}
    /// Whether nothing that is open waits for a peer.
    virtual bool is_idle() const = 0;
    /// Whether nothing is open that will ever move: what is_idle() says, and no message of this
    /// rank to itself waits for its stream.
    virtual bool is_over() const = 0;

   protected:
    ~Work() = default;
  };

  /// `cores`: how many cores each rank has, see Placement. Everything is borrowed.
  ProgressLoop(Work& work, const Failure& failure, const std::vector<Transport*>& transports,
               int cores, WaitMode waits)
      : work_(work),
        failure_(failure),
        transports_(transports),
        oversubscription_(probe::OversubscriptionMonitor::of_process()),
        cores_(cores),
        policy_(waits),
        fork_generation_((watch_forks(), fork_generation())) {}

  /// Whether it belongs to the parent of this process, where its threads are. Then functions that
  /// make progress or sleep do nothing, and nobody may take the lock.
  bool is_forked() const { return fork_generation() != fork_generation_; }

  ProgressLock progress_lock() { return ProgressLock(lock_word_); }
  void lock(ProgressLock& progress_lock) {
    if (!progress_lock.try_lock()) lock_slowly(progress_lock);
  }
  /// False: another thread holds it until `deadline`.
  bool lock(ProgressLock& progress_lock, Deadline deadline);
  CallOrder& order() { return order_; }
  /// Waits, and gives the lock away meanwhile, until collectives of this caller may take places, or
  /// after a failure. Errors: in_progress at `until`; timeout after `limit`, 0: none; invalid_usage
  /// while a call that does not block keeps the order; aborted where the program ends the wait.
  Status await_turn(ProgressLock& progress_lock, std::chrono::milliseconds limit,
                    const Deadline& until = {});
  /// Whether another thread has a call to make.
  bool is_wanted() const { return wanted_.load(std::memory_order_relaxed) > 0; }
  /// Whether some thread is in wait() or wait_any().
  bool has_waiting() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  /// Whether the host has fewer cores than threads that wait: `threads` in each rank of this
  /// communicator, or, as far as known, the ranks of all jobs. A thread that waits gives its core
  /// away at once then.
  bool is_oversubscribed(int threads = 1) const {
    return threads > cores_ || oversubscription_.is_oversubscribed();
  }
  /// How often a blocking receive looks before it waits like others.
  std::uint32_t poll_budget() const { return is_oversubscribed() ? 1 : 32; }
  probe::OversubscriptionMonitor& oversubscription() { return oversubscription_; }
  WaitPolicy& wait_policy() { return policy_; }

  /// Returns when the operation is done, with its status; else the failure, or in_progress if that
  /// is all at `deadline`. Holds the progress lock as long as nobody else wants it. Without a
  /// deadline the program may end it by an Interrupt.
  Status wait(ProgressLock& progress_lock, Operation& operation, Deadline deadline = {});
  /// Returns when one of them is done; also after a failure and at `deadline`.
  void wait_any(ProgressLock& progress_lock, std::span<const std::shared_ptr<Operation>> operations,
                Deadline deadline);
  /// Makes progress if nobody else does; true if anything moved.
  bool progress();
  /// Calls Work::diagnose() once, unless another thread has the progress lock.
  void diagnose();
  /// Sleeps shortly, after progress() found nothing for long.
  void sleep_briefly();
  /// Makes progress once more, then sleeps until something may have moved, for `most` at most. The
  /// caller holds the progress lock; without transports it is given back. `alone`: what the caller
  /// waits for, if that is not among what is open.
  void sleep(ProgressLock& progress_lock, std::chrono::nanoseconds most,
             Operation* alone = nullptr);
  /// Something moved, or may move: threads that wait without the progress lock look again.
  void ring() {
    doorbell_.ring();
    background_doorbell_.ring();
  }
  /// Lets the holder of the progress lock look again, if it sleeps; ring() is for other threads.
  void wake();
  /// Sleeps must not be much longer than the time limits that are used here.
  void note_limit(std::chrono::milliseconds limit) {
    if (limit.count() > 0 && limit < 10 * Backoff::kLongSleep) short_limits_ = true;
  }

  /// The background thread calls these in place of progress() and sleep_briefly(). Where somebody
  /// waits, they do nothing and sleep. `most`: how long, if nothing is missed meanwhile.
  bool progress_in_background();
  void sleep_in_background(std::chrono::nanoseconds most);
  /// Sleeps while other threads wait, for they make progress; false: none does. `called`: see
  /// wake_background().
  bool sleep_beside_waiters(std::chrono::nanoseconds most, const std::atomic<bool>& called);
  /// Ends the sleep of the background thread; beside waiters surely, if `called` was set before.
  void wake_background() {
    wake();
    background_doorbell_.ring();
  }
  /// Whether the last progress_in_background() or wait() left nothing to do, and expect() was not
  /// called since.
  bool is_quiet() const { return quiet_.load(std::memory_order_acquire) || failure_.happened(); }
  void expect() { quiet_.store(false, std::memory_order_release); }

  /// Takes the progress lock of this communicator for good, at exit: no other thread makes progress
  /// on it any more. False: a thread holds the lock until `deadline`.
  bool seize(Deadline deadline);

 private:
  void prepare_sleep();
  bool stands_back() const;
  template <typename IsOver, typename ForEach>
  void wait_until(ProgressLock& progress_lock, std::uint32_t kind, Deadline deadline,
                  const IsOver& is_over, const ForEach& for_each);
  void lock_slowly(ProgressLock& progress_lock) { lock(progress_lock, Deadline()); }

  Work& work_;
  const Failure& failure_;
  const std::vector<Transport*>& transports_;
  probe::OversubscriptionMonitor& oversubscription_;
  const int cores_;
  WaitPolicy policy_;
  std::atomic<bool> lock_word_{false};
  CallOrder order_;
  std::atomic<int> wanted_{0};                  // threads in lock_slowly()
  std::atomic<int> waiting_{0};                 // threads in wait()
  std::atomic<bool> quiet_{false};              // see is_quiet()
  std::atomic<bool> background_sleeps_{false};  // the background thread sleeps with the lock
  std::atomic<bool> asleep_{false};  // the holder of the progress lock sleeps in the last transport
  std::atomic<bool> woken_{false};   // wake() was called since somebody slept
  bool short_limits_ = false;        // see note_limit(); with the lock
  std::vector<pollfd> alarms_;       // the sockets of all transports but the last; with the lock
  Doorbell doorbell_;                // threads that wait without the progress lock look again
  Doorbell background_doorbell_;  // the background thread does, which others' progress never wakes
  const std::uint64_t fork_generation_;
};

}  // namespace anyccl
