// Comm: puts, signals and waits for signals.

#include <new>
#include <utility>

#include "base/error.hpp"
#include "framework/communicator/communicator.hpp"

namespace anyccl {
namespace {

OtherKind kind_of(const OneSidedCall& call) {
  using What = OneSidedCall::What;
  return call.what == What::put      ? OtherKind::put
         : call.what == What::signal ? OtherKind::signal
                                     : OtherKind::signal_wait;
}

/// What the recorder wants to know.
Call described(const OneSidedCall& call) {
  Call what;
  what.dtype = call.dtype;
  what.count = call.count;
  what.root = call.peer;
  if (call.what == OneSidedCall::What::wait)
    what.root = call.awaited.size() == 1 ? Rank{call.awaited[0].peer} : kAnySource;
  return what;
}

/// The error of all ranks where this one has no memory for `call`.
Status without_memory(const std::string& me, const OneSidedCall& call) {
  if (call.what == OneSidedCall::What::wait)
    return error(Code::system_error, "{} has no memory for a call: wait_signal", me);
  return error(Code::system_error, "{} has no memory for a call: {} to rank {}", me,
               call.what == OneSidedCall::What::put ? "put_signal" : "signal", index(call.peer));
}

}  // namespace

/// Null if it is done at once. The caller holds the progress lock.
std::shared_ptr<Operation> Comm::start(const OneSidedCall& call, Gate gate,
                                       std::uint32_t poll_budget) {
  const std::uint64_t number = records_.recorder().add(
      described(call), gate == Gate::open ? RecordState::running : RecordState::issued,
      {.position = static_cast<std::uint32_t>(call.signal),
       .other = kind_of(call),
       .stream = gate.stream});
  std::shared_ptr<Operation> operation = messages_.start(call, gate, poll_budget);
  if (operation == nullptr || operation->done())
    records_.recorder().end(number, operation == nullptr || operation->status().ok());
  else
    operation->record_in(records_.recorder(), number);
  return operation;
}

Status Comm::run(const OneSidedCall& call) {
  if (forked()) return failure();
  std::shared_ptr<Comm> alive;  // longer than the lock, if another thread aborts it meanwhile
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (failure_.happened()) return failure();
  ANYCCL_CHECK(messages_.one_sided().check(call));
  try {
    const auto operation = start(call, Gate::open, poll_budget());
    if (call.what == OneSidedCall::What::wait) loop_.ring();  // it has looked for others, too
    if (operation == nullptr) return {};
    alive = weak_from_this().lock();
    note_wait(*operation);
    return loop_.wait(progress_lock, *operation);
  } catch (const std::bad_alloc&) {
    if (alive == nullptr) alive = weak_from_this().lock();  // before the lock is given back
    if (progress_lock.owns_lock()) progress_lock.unlock();
    abort(without_memory(me_.names[uindex(me_.rank)], call));
    return failure();
  }
}

Result<std::shared_ptr<Operation>> Comm::issue(const OneSidedCall& call, Gate gate) try {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (failure_.happened()) return failure();
  ANYCCL_CHECK(messages_.one_sided().check(call));
  std::shared_ptr<Operation> operation = start(call, gate, 1);
  if (operation == nullptr) {
    operation = std::make_shared<ArrivalWait>();
    operation->complete({});
  }
  go_on(gate);
  return operation;
} catch (const std::bad_alloc&) {
  abort(without_memory(me_.names[uindex(me_.rank)], call));
  return failure();
}

}  // namespace anyccl
