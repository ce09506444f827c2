#include "framework/communicator/call_sequence.hpp"

#include <utility>

#include "base/error.hpp"

namespace anyccl {

thread_local constinit CallerId caller_of_thread = nullptr;

/// Waits until collectives of this caller may take places. `until`: in_progress then.
Status Comm::await_turn(ProgressLock& progress_lock, std::chrono::milliseconds limit,
                        const Deadline& until) {
  constexpr auto kLook = std::chrono::milliseconds(50);  // at failures
  if (limit.count() == 0) limit = me_.wait_limits.most;
  const Deadline late = limit.count() == 0 ? Deadline::never() : Deadline::in(limit);
  while (order_.is_kept_by_other()) {
    if (failure_.happened()) return failure();
    if (order_.is_kept_by_job())
      return error(Code::invalid_usage,
                   "another communicator is being made from {}, by a call that did not block: wait "
                   "until it is ready",
                   me_.label);
    if (until.passed())
      return Status(Code::in_progress, "another thread is in a call of several operations");
    if (late.passed())
      return error(Code::timeout,
                   "another thread was in a call of several operations on {} until the time limit",
                   me_.label);
    progress_lock.unlock();
    order_.sleep_while_kept(kLook);
    loop_.lock(progress_lock);
  }
  return {};
}

Result<std::shared_ptr<CallSequence>> CallSequence::begin(Comm& comm, const Deadline& deadline) {
  std::shared_ptr<CallSequence> made(new CallSequence(comm));
  ANYCCL_CHECK(made->keep(caller_here(), false, deadline));
  return made->has_begun_ ? std::move(made) : nullptr;
}

Result<std::shared_ptr<CallSequence>> CallSequence::begin_for_job(Comm& comm) {
  std::shared_ptr<CallSequence> made(new CallSequence(comm));
  ANYCCL_CHECK(made->keep(made.get(), true, {}));
  return made;
}

Status CallSequence::keep(CallerId caller, bool is_job, const Deadline& deadline) {
  if (comm_->forked()) return comm_->failure();
  ProgressLock progress_lock = comm_->loop_.progress_lock();
  comm_->loop_.lock(progress_lock);
  ANYCCL_CHECK(comm_->await_turn(progress_lock, {}, deadline));
  has_begun_ = !comm_->order_.is_kept();
  if (has_begun_) comm_->order_.keep(caller, is_job);
  return {};
}

void CallSequence::take() {
  if (!has_begun_ || comm_->forked()) return;
  ProgressLock progress_lock = comm_->loop_.progress_lock();
  comm_->loop_.lock(progress_lock);
  comm_->order_.keep(caller_here(), comm_->order_.is_kept_by_job());
}

void CallSequence::end() {
  if (!std::exchange(has_begun_, false) || comm_->forked()) return;
  ProgressLock progress_lock = comm_->loop_.progress_lock();
  comm_->loop_.lock(progress_lock);
  comm_->order_.give_back();
}

}  // namespace anyccl
