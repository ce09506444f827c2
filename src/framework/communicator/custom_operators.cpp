// Operators of the program, in a communicator.

#include "framework/communicator/communicator.hpp"

namespace anyccl {

Result<ReduceOp> Comm::add_operator(const Operator& op) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  return plans_.operators().add(op);
}

Status Comm::remove_operator(ReduceOp op) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  return plans_.remove_operator(op);
}

std::shared_ptr<const Operator> Comm::find_operator(ReduceOp op) {
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  return plans_.operators().find(op);
}

void Comm::copy_operators(Comm& from) {
  ProgressLock progress_lock = from.loop_.progress_lock();
  from.loop_.lock(progress_lock);
  plans_.operators() = from.plans_.operators();
}

}  // namespace anyccl
