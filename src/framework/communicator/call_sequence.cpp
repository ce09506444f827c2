#include "framework/communicator/call_sequence.hpp"

#include <utility>

#include "base/error.hpp"

namespace anyccl {

thread_local constinit CallerId caller_of_thread = nullptr;

Result<std::shared_ptr<CallSequence>> CallSequence::begin(Comm& comm, const Deadline& deadline) {
  std::shared_ptr<CallSequence> made(new CallSequence(comm));
  ANYCCL_CHECK(made->keep(caller_here(), false, deadline));
  return made->has_begun_ ? std::move(made) : nullptr;
}

Result<std::shared_ptr<CallSequence>> CallSequence::begin_for_job(Comm& comm) {
  std::shared_ptr<CallSequence> made(new CallSequence(comm));
  ANYCCL_CHECK(made->keep(made.get(), true, {}));
  if (!made->has_begun_) made->borrow();
  return made;
}

/// Becomes a part of the sequence that this thread is in, if it is in one.
void CallSequence::borrow() {
  if (comm_->forked()) return;
  ProgressLock progress_lock = comm_->loop_.progress_lock();
  comm_->loop_.lock(progress_lock);
  CallOrder& order = comm_->loop_.order();
  if (!order.is_kept() || order.is_kept_by_other()) return;
  order.lend(this);
  has_begun_ = is_part_ = true;
}

/// Waits for the turn, then keeps the order for `caller`. has_begun_ stays false, without an error,
/// after a failure and where this thread keeps the order already.
Status CallSequence::keep(CallerId caller, bool is_job, const Deadline& deadline) {
  if (comm_->forked()) return comm_->failure();
  ProgressLock progress_lock = comm_->loop_.progress_lock();
  comm_->loop_.lock(progress_lock);
  ANYCCL_CHECK(comm_->loop_.await_turn(progress_lock, comm_->me_.wait_limits.most, deadline));
  // After a failure nothing has a place any more, and those that are left may carry on.
  has_begun_ = !comm_->loop_.order().is_kept() && !comm_->failure_.happened();
  if (has_begun_) comm_->loop_.order().keep(caller, is_job);
  return {};
}

void CallSequence::give_to(CallerId caller) {
  if (!has_begun_ || comm_->forked()) return;
  ProgressLock progress_lock = comm_->loop_.progress_lock();
  comm_->loop_.lock(progress_lock);
  comm_->loop_.order().keep(caller, comm_->loop_.order().is_kept_by_job());
}

void CallSequence::end() {
  if (!std::exchange(has_begun_, false) || comm_->forked()) return;
  ProgressLock progress_lock = comm_->loop_.progress_lock();
  comm_->loop_.lock(progress_lock);
  is_part_ ? comm_->loop_.order().give_back_lent() : comm_->loop_.order().give_back_own();
}

}  // namespace anyccl
