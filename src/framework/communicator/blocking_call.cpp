// Comm: a blocking call, from its arguments to its end.

#include <memory>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "framework/communicator/communicator.hpp"
#include "framework/waiting/interrupt.hpp"

namespace anyccl {

/// A blocking call on its way through a communicator. It is done at once, or runs alone while
/// nothing else is open, or waits in the queue like an issued call. Comm::run() makes one on the
/// stack. It is all in this file, so that the compiler inlines what every call goes through.
///
/// Threads: the one that makes the call. Everything is borrowed.
class BlockingCall {
 public:
  BlockingCall(Comm& comm, const Call& call, Comm::Handover* handover)
      : comm_(comm), call_(call), handover_(handover), progress_lock_(comm.loop_.progress_lock()) {}

  /// Does what Comm::run() says; once.
  inline Status run();

 private:
  inline Status run_locked();
  Status run_message();
  Status finish_alone(Execution& alone);
  Status glance();
  Status wait_or_hand_over(const std::shared_ptr<Operation>& operation);
  void keep_alive() { alive_ = comm_.weak_from_this().lock(); }

  Comm& comm_;
  const Call& call_;
  Comm::Handover* const handover_;  // null: it blocks for as long as it takes
  std::shared_ptr<Comm> alive_;     // longer than the lock, if another thread aborts it meanwhile
  ProgressLock progress_lock_;
};

Status BlockingCall::run() {
  ProgressLoop& loop = comm_.loop_;
  loop.lock(progress_lock_);
  if (loop.order().is_kept_by_other() && !call_.is_point_to_point()) [[unlikely]]
    ANYCCL_CHECK(loop.await_turn(progress_lock_, comm_.me_.wait_limits.most_of(call_.timeout),
                                 handover_ == nullptr ? Deadline::never() : handover_->until()));
  try {
    return run_locked();
  } catch (const std::bad_alloc&) {
    if (alive_ == nullptr) keep_alive();  // before the lock is given back
    if (progress_lock_.owns_lock()) progress_lock_.unlock();
    return comm_.fail_without_memory(call_);
  }
}

Status BlockingCall::run_locked() {
  if (comm_.failure_.happened()) return comm_.failure();
  if (call_.is_point_to_point())
    return comm_.does_at_once(call_, comm_.loop_.poll_budget()) ? Status() : run_message();
  CollectiveQueue& queue = comm_.queue_;
  const CallKey key(call_, comm_.me_.rank);
  PlanCache& plans = queue.plans();
  if (!plans.is_checked(call_, key)) ANYCCL_CHECK(plans.check(call_));
  comm_.loop_.note_limit(call_.timeout);
  if (comm_.me_.verify.each != 0) [[unlikely]]
    ANYCCL_CHECK(queue.check_verifiable(call_));
  if (!comm_.is_idle() || queue.is_verified_next(call_)) {
    keep_alive();
    ANYCCL_TRY(const std::shared_ptr<Operation> operation, comm_.enqueue(call_, key, Gate::open));
    comm_.note_wait(*operation);
    return wait_or_hand_over(operation);
  }
  const PreparedCall* known = plans.find_last(key);
  if (known == nullptr) {
    ANYCCL_TRY(const std::shared_ptr<const PreparedCall> found, plans.find(call_, key));
    known = found.get();
  }
  Execution& alone = queue.run_alone(*known, call_);
  if (alone.done()) return known->only_gives ? glance() : alone.status();
  return finish_alone(alone);
}

/// Advances what runs alone to its end. Queues it, and waits for it there, if another thread has a
/// call to make, or if its time is up or the program may end the wait.
Status BlockingCall::finish_alone(Execution& alone) {
  ProgressLoop& loop = comm_.loop_;
  MessageMatcher& messages = comm_.messages_;
  const auto queue_it = [&] {
    keep_alive();
    return wait_or_hand_over(comm_.queue_.queue_alone());
  };
  const bool oversubscribed = loop.is_oversubscribed(call_.threads);
  if (oversubscribed) loop.oversubscription().refresh_sometimes();
  Backoff backoff(loop.oversubscription(), oversubscribed, loop.wait_policy(), alone.kind());
  Interrupt interrupt;
  while (!alone.done()) {
    if (loop.is_wanted()) return queue_it();
    if (oversubscribed ? alone.advance() : alone.advance_patiently()) {
      backoff.reset();
      continue;
    }
    const bool has_windows = messages.looks_at_peers();
    if (has_windows && messages.advance()) continue;  // peers may wait for that
    const Backoff::Next next = backoff.next();
    if (next == Backoff::Next::poll) continue;
    if (Backoff::checks(next)) {
      loop.oversubscription().refresh();
      Status bad = comm_.check_stalled(alone, &alone);
      if (bad.ok()) bad = messages.problem();
      if (!bad.ok()) comm_.fail(bad);
      if (comm_.failure_.happened()) return comm_.failure();
    }
    const bool has_to_go = handover_ != nullptr ? handover_->until().passed() : interrupt.is_due();
    if (has_to_go || (Backoff::sleeps(next) && has_windows))  // which must end the sleep, too
      return queue_it();
    if (Backoff::sleeps(next)) loop.sleep(progress_lock_, backoff.sleep_time(), &alone);
  }
  return alone.status();
}

/// Looks whether a call in which this rank only gives is known to be wrong already; then the
/// communicator fails.
Status BlockingCall::glance() {
  const Status bad = comm_.queue_.glance();
  if (bad.ok()) return {};
  comm_.fail(bad);
  return comm_.failure();
}

Status BlockingCall::run_message() {
  ANYCCL_CHECK(comm_.queue_.plans().check(call_));
  comm_.loop_.note_limit(call_.timeout);
  std::shared_ptr<MessageRequest> request = comm_.add_message(call_, Gate::open);
  comm_.note_wait(*request);
  if (!request->done()) keep_alive();
  Status status = wait_or_hand_over(request);
  if (progress_lock_.owns_lock() && status.code() != Code::in_progress)
    comm_.messages_.recycle(std::move(request));
  return status;
}

Status BlockingCall::wait_or_hand_over(const std::shared_ptr<Operation>& operation) {
  Status status = comm_.loop_.wait(progress_lock_, *operation,
                                   handover_ == nullptr ? Deadline() : handover_->until());
  if (handover_ != nullptr && status.code() == Code::in_progress) handover_->rest = operation;
  return status;
}

Status Comm::run(const Call& call, Handover* handover) {
  if (forked()) return failure();  // before the lock, which a thread of the parent may have held
  return BlockingCall(*this, call, handover).run();
}

}  // namespace anyccl
