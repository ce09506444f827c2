#include "framework/communicator/one_sided_calls.hpp"

#include <new>
#include <utility>

#include "base/error.hpp"

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
std::shared_ptr<Operation> OneSidedCalls::start(const OneSidedCall& call, Gate gate,
                                                std::uint32_t poll_budget) {
  Recorder& recorder = comm_.records_.recorder();
  const std::uint64_t number =
      recorder.add(described(call), gate == Gate::open ? RecordState::running : RecordState::issued,
                   {.position = static_cast<std::uint32_t>(call.signal),
                    .other = kind_of(call),
                    .stream = gate.stream});
  std::shared_ptr<Operation> operation = comm_.messages_.start(call, gate, poll_budget);
  if (operation == nullptr || operation->done())
    recorder.end(number, operation == nullptr || operation->status().ok());
  else
    operation->record_in(recorder, number);
  return operation;
}

Status OneSidedCalls::check(const OneSidedCall& call) {
  return comm_.failure_.happened() ? comm_.failure() : comm_.messages_.one_sided().check(call);
}

Status OneSidedCalls::run(const OneSidedCall& call) {
  if (comm_.forked()) return comm_.failure();
  std::shared_ptr<Comm> alive;  // longer than the lock, if another thread aborts it meanwhile
  ProgressLoop& loop = comm_.loop_;
  ProgressLock progress_lock = loop.progress_lock();
  loop.lock(progress_lock);
  ANYCCL_CHECK(check(call));
  try {
    const auto operation = start(call, Gate::open, loop.poll_budget());
    if (call.what == OneSidedCall::What::wait) loop.ring();  // it has looked for others, too
    if (operation == nullptr) return {};
    alive = comm_.weak_from_this().lock();
    comm_.note_wait(*operation);
    return loop.wait(progress_lock, *operation);
  } catch (const std::bad_alloc&) {
    if (alive == nullptr) alive = comm_.weak_from_this().lock();  // before the lock is given back
    if (progress_lock.owns_lock()) progress_lock.unlock();
    return fail_without_memory(call);
  }
}

Result<std::shared_ptr<Operation>> OneSidedCalls::issue(const OneSidedCall& call, Gate gate) try {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  ANYCCL_CHECK(check(call));
  std::shared_ptr<Operation> operation = start(call, gate, 1);
  if (operation == nullptr) {
    operation = std::make_shared<ArrivalWait>();
    operation->complete({});
  }
  comm_.go_on(gate);
  return operation;
} catch (const std::bad_alloc&) {
  return fail_without_memory(call);
}

/// Without the lock. Peers must not wait for what this rank cannot do.
Status OneSidedCalls::fail_without_memory(const OneSidedCall& call) {
  comm_.abort(without_memory(comm_.me_.names[uindex(comm_.me_.rank)], call));
  return comm_.failure();
}

}  // namespace anyccl
