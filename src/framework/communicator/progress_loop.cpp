#include "framework/communicator/progress_loop.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "framework/waiting/interrupt.hpp"

namespace anyccl {
namespace {

/// A thread that waits. When it has, the background thread may have something to do.
class WaitingThread {
 public:
  WaitingThread(std::atomic<int>& waiting, Doorbell& background)
      : waiting_(waiting), background_(background) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
  }
  ~WaitingThread() {
    waiting_.fetch_sub(1, std::memory_order_seq_cst);  // see Doorbell::sleep_while()
    background_.ring();
  }
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;

 private:
  std::atomic<int>& waiting_;
  Doorbell& background_;
};

}  // namespace

Status ProgressLoop::await_turn(ProgressLock& progress_lock, std::chrono::milliseconds limit,
                                const Deadline& until) {
  constexpr int kLookMs = 50;  // at failures
  const Deadline late = limit.count() == 0 ? Deadline::never() : Deadline::in(limit);
  Interrupt interrupt;
  while (order_.is_kept_by_other() && !failure_.happened()) {
    if (order_.is_kept_by_job())
      return error(Code::invalid_usage,
                   "another communicator is being made from this one, by a call that did not "
                   "block: wait until it is ready");
    if (until.passed())
      return Status(Code::in_progress, "another thread is in a call of several operations");
    if (late.passed())
      return error(Code::timeout,
                   "another thread was in a call of several operations until the time limit");
    progress_lock.unlock();
    const int left_ms = std::min(until.poll_ms(kLookMs), late.poll_ms(kLookMs));
    order_.sleep_while_kept(std::chrono::milliseconds(std::max(1, left_ms)));
    const bool ends = until.is_never() && interrupt.is_due() && Interrupt::is_wanted();
    lock(progress_lock);
    if (ends)
      return error(Code::aborted,
                   "the program ended the wait for a call of several operations of another thread");
  }
  return {};
}

bool ProgressLoop::progress() {
  if (is_forked()) return false;
  ProgressLock progress_lock(lock_word_);
  if (!progress_lock.try_lock() || failure_.happened()) return false;
  const bool moved = work_.advance();
  if (moved) ring();
  return moved;
}

void ProgressLoop::diagnose() {
  if (is_forked()) return;
  ProgressLock progress_lock(lock_word_);
  if (progress_lock.try_lock()) work_.diagnose();
}

Status ProgressLoop::wait(ProgressLock& progress_lock, Operation& operation, Deadline deadline) {
  if (operation.done()) return operation.status();
  wait_until(
      progress_lock, operation.kind(), deadline, [&] { return operation.done(); },
      [&](auto tell) { (operation.on_host().*tell)(); });
  if (operation.done()) return operation.status();
  return failure_.happened() ? failure_.why()
                             : Status(Code::in_progress, "the operation is not complete yet");
}

void ProgressLoop::wait_any(ProgressLock& progress_lock,
                            std::span<const std::shared_ptr<Operation>> operations,
                            Deadline deadline) {
  wait_until(
      progress_lock, 0, deadline,
      [&] {
        return std::any_of(operations.begin(), operations.end(),
                           [](const auto& operation) { return operation->done(); });
      },
      [&](auto tell) {
        for (const auto& operation : operations) (operation->on_host().*tell)();
      });
}

/// Until is_over() or the deadline, or until the communicator fails. `kind`: of what it waits for.
/// `for_each`: calls a function of each operation that it waits for.
template <typename IsOver, typename ForEach>
void ProgressLoop::wait_until(ProgressLock& progress_lock, std::uint32_t kind, Deadline deadline,
                              const IsOver& is_over, const ForEach& for_each) {
  bool is_long = false;
  const auto note_check = [&](Backoff::Next next) {
    if (Backoff::checks(next) && !std::exchange(is_long, true)) for_each(&Operation::begin_wait);
  };
  const WaitingThread waiter(waiting_, background_doorbell_);
  const bool oversubscribed = is_oversubscribed();
  if (oversubscribed) oversubscription_.refresh_sometimes();
  Backoff backoff(oversubscription_, oversubscribed, policy_, kind);
  Interrupt interrupt;
  const auto look_for_interrupt = [&](Backoff::Next next) {
    if (next == Backoff::Next::poll || !deadline.is_never() || !interrupt.is_due()) return;
    if (progress_lock.owns_lock()) progress_lock.unlock();
    if (Interrupt::is_wanted()) work_.interrupt();
  };
  while (!is_over()) {
    const bool wanted = is_wanted();
    if (wanted) progress_lock.unlock();
    if (!progress_lock.owns_lock() && (wanted || !progress_lock.try_lock())) {
      if (background_sleeps_.load(std::memory_order_acquire)) transports_.back()->wake();
      ::sched_yield();
      const Backoff::Next next = backoff.next();
      note_check(next);
      look_for_interrupt(next);
      if (next != Backoff::Next::poll && deadline.passed()) break;
      if (Backoff::sleeps(next) && !is_over()) doorbell_.sleep(Backoff::kSleep);
      continue;
    }
    if (failure_.happened()) break;
    if (work_.advance()) {
      doorbell_.ring();
      backoff.reset();
      continue;
    }
    const Backoff::Next next = backoff.next();
    note_check(next);
    if (Backoff::checks(next)) work_.diagnose();
    if (next != Backoff::Next::poll && deadline.passed()) break;
    look_for_interrupt(next);
    if (Backoff::sleeps(next) && progress_lock.owns_lock() && !is_over())
      sleep(progress_lock,
            std::min<std::chrono::nanoseconds>(
                backoff.sleep_time(), std::chrono::milliseconds(std::max(1, deadline.poll_ms()))));
  }
  if (is_long) for_each(&Operation::end_wait);
  if (progress_lock.owns_lock()) work_.end_wait();
  doorbell_.ring();
  // If nothing is open any more, the background thread looks once and then no more.
  if (progress_lock.owns_lock() && work_.is_over()) quiet_.store(true, std::memory_order_release);
}

bool ProgressLoop::progress_in_background() {
  if (is_forked() || waiting_.load(std::memory_order_relaxed) > 0) return false;
  if (stands_back()) return false;
  ProgressLock progress_lock(lock_word_);
  if (!progress_lock.try_lock() || failure_.happened()) return false;
  const bool moved = work_.advance();
  quiet_.store(work_.is_over(), std::memory_order_release);
  if (moved) doorbell_.ring();
  return moved;
}

/// If a thread has a call to make, gives the core away and returns true. The background thread has
/// the progress lock nearly all the time, so when it loses its core it mostly holds it: on that
/// core the other thread would find it locked again and again.
bool ProgressLoop::stands_back() const {
  if (!is_wanted()) return false;
  ::sched_yield();
  return true;
}

bool ProgressLoop::sleep_beside_waiters(std::chrono::nanoseconds most,
                                        const std::atomic<bool>& called) {
  if (is_forked() || waiting_.load(std::memory_order_relaxed) == 0) return false;
  background_doorbell_.sleep_while(
      [&] {
        return waiting_.load(std::memory_order_seq_cst) > 0 &&
               !called.load(std::memory_order_seq_cst);
      },
      most);
  return true;
}

void ProgressLoop::sleep_in_background(std::chrono::nanoseconds most) {
  if (is_forked()) return;
  ProgressLock progress_lock(lock_word_);
  if (waiting_.load(std::memory_order_relaxed) > 0 || stands_back() || !progress_lock.try_lock())
    return background_doorbell_.sleep(Backoff::kSleep);
  if (failure_.happened()) return;
  work_.diagnose();
  if (work_.is_idle() || transports_.empty()) {  // only a gate can change that, and it rings
    progress_lock.unlock();
    return background_doorbell_.sleep(Backoff::kSleep);
  }
  background_sleeps_.store(true, std::memory_order_release);
  sleep(progress_lock, most);
  background_sleeps_.store(false, std::memory_order_relaxed);
}

void ProgressLoop::sleep_briefly() {
  if (is_forked()) return;
  ProgressLock progress_lock(lock_word_);
  if (progress_lock.try_lock())
    sleep(progress_lock, Backoff::kSleep);
  else
    doorbell_.sleep(Backoff::kSleep);
}

/// Waits for the progress lock. A thread that only waits for an operation leaves it to those that
/// come here: they are about to add to what can be done.
bool ProgressLoop::lock(ProgressLock& progress_lock, Deadline deadline) {
  if (progress_lock.try_lock()) return true;
  wanted_.fetch_add(1, std::memory_order_seq_cst);
  do {
    wake();
    ::sched_yield();
  } while (!progress_lock.try_lock() && !deadline.passed());
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  return progress_lock.owns_lock();
}

void ProgressLoop::sleep(ProgressLock& progress_lock, std::chrono::nanoseconds most,
                         Operation* alone) {
  if (is_wanted()) return;
  if (transports_.empty()) {
    progress_lock.unlock();
    return doorbell_.sleep(Backoff::kSleep);
  }
  Transport& last = *transports_.back();
  asleep_.store(true, std::memory_order_seq_cst);
  prepare_sleep();
  const bool moved = alone != nullptr ? alone->advance() : work_.advance();
  const bool stays = moved || woken_.exchange(false, std::memory_order_seq_cst) ||
                     wanted_.load(std::memory_order_seq_cst) > 0 || failure_.is_asked();
  const bool surely = std::all_of(transports_.begin(), transports_.end(),
                                  [](const Transport* t) { return t->wakes_surely(); });
  if (short_limits_ || !surely) most = std::min<std::chrono::nanoseconds>(most, Backoff::kSleep);
  last.sleep(stays ? std::chrono::nanoseconds(0) : most, alarms_);
  for (Transport* t : transports_)
    if (t != &last) t->end_sleep();
  asleep_.store(false, std::memory_order_relaxed);
  if (moved) doorbell_.ring();
}

/// From now on peers of all transports wake the last one. The caller holds the progress lock.
void ProgressLoop::prepare_sleep() {
  alarms_.clear();
  for (Transport* t : transports_) {
    const bool last = t == transports_.back();
    t->prepare_sleep(last ? Transport::Alarm::own : Transport::Alarm::sockets);
    if (!last) t->append_alarms(alarms_);
  }
}

void ProgressLoop::wake() {
  woken_.store(true, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) transports_.back()->wake();
}

bool ProgressLoop::seize(Deadline deadline) {
  ProgressLock progress_lock(lock_word_);
  wanted_.fetch_add(1, std::memory_order_relaxed);  // for good: others only sleep from now on
  while (!progress_lock.try_lock() && !deadline.passed()) {
    wake();
    ::sched_yield();
  }
  const bool is_ours = progress_lock.owns_lock();
  progress_lock.keep_locked();
  return is_ours;
}

}  // namespace anyccl
