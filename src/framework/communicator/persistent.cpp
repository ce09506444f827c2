// Persistent calls: checked and planned once, started many times.

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "framework/communicator/queued_collective.hpp"

namespace anyccl {
namespace {

Status is_open_still() {
  return error(Code::invalid_usage, "the prepared call was started before and is not complete yet");
}

/// Whether nobody else has it any more, and all that others did with it has happened before this
/// returns. use_count() alone orders nothing; giving up an owner does, after those before.
template <typename T>
bool is_sole_owner(const std::shared_ptr<T>& owner) {
  if (owner.use_count() > 1) return false;
  std::shared_ptr<T>(owner).reset();
  return true;
}

}  // namespace

struct Comm::Persistent {
  Persistent(const Call& call, Rank me, int size)
      : kept(call, me, size),
        key(call.is_point_to_point() ? CallKey() : CallKey(kept.call(), me)) {}

  KeptCall kept;
  HeldOperator op;  // that it names, of the program; or null
  CallKey key;
  std::shared_ptr<const PreparedCall> plan;  // of a collective
  std::uint64_t plan_generation = 0;         // see PlanCache::generation(); 0: to be checked
  std::shared_ptr<Operation> last;           // of the last start, alone or with others
  // The operation, which may run again if nobody else has it any more.
  std::shared_ptr<Queued> collective;
  std::shared_ptr<MessageRequest> message;
  bool is_taken = false;  // by a start_all() that is under way
};

Result<std::shared_ptr<Comm::Persistent>> Comm::prepare(const Call& call) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  ANYCCL_CHECK(ready(call));
  auto persistent = std::make_shared<Persistent>(call, me_.rank, me_.size);
  persistent->op = plans_.operators().hold(call.op);
  ANYCCL_CHECK(ready_to_start(*persistent));
  return persistent;
}

Result<std::shared_ptr<Operation>> Comm::start(Persistent& call, Gate gate) try {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (!call.kept.call().is_point_to_point() && loop_.order().is_kept_by_other())
    ANYCCL_CHECK(
        loop_.await_turn(progress_lock, me_.wait_limits.most_of(call.kept.call().timeout)));
  ANYCCL_TRY(std::shared_ptr<Operation> operation, enqueue_again(call, gate));
  if (gate == Gate::open)
    advance();
  else
    gated_.store(true, std::memory_order_relaxed);
  return operation;
} catch (const std::bad_alloc&) {
  return fail_without_memory(call.kept.call());
}

Comm::IssuedCalls Comm::start_all(std::span<Persistent* const> calls) try {
  if (forked()) return IssuedCalls(calls.size(), failure());
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  const bool all_are_messages = std::ranges::all_of(
      calls, [](const Persistent* call) { return call->kept.call().is_point_to_point(); });
  if (loop_.order().is_kept_by_other() && !all_are_messages)
    if (Status status = loop_.await_turn(progress_lock, me_.wait_limits.most); !status.ok())
      return IssuedCalls(calls.size(), std::move(status));
  IssuedCalls started(calls.size(), Status());
  std::vector<std::size_t> collectives;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i]->kept.call().is_point_to_point())
      started[i] = enqueue_again(*calls[i], Gate::open);
    else if (Status status = ready_to_start(*calls[i]); !status.ok())
      started[i] = std::move(status);
    else if (std::exchange(calls[i]->is_taken, true))
      started[i] = is_open_still();
    else
      collectives.push_back(i);
    loop_.note_limit(calls[i]->kept.call().timeout);
  }
  std::vector<const Call*> todo;
  for (const std::size_t i : collectives) {
    calls[i]->is_taken = false;
    todo.push_back(&calls[i]->kept.call());
  }
  for (std::size_t first = 0, count = 0; first < todo.size(); first += count) {
    const auto rest = std::span(todo).subspan(first);
    count = plans_.count_fusible(rest);
    const auto operation = count > 1 ? enqueue_fused(rest.first(count), Gate::open)
                                     : enqueue_again(*calls[collectives[first]], Gate::open);
    for (std::size_t i = first; i < first + count; ++i) {
      started[collectives[i]] = operation;
      if (operation.ok()) calls[collectives[i]]->last = *operation;
    }
  }
  advance();
  return started;
} catch (const std::bad_alloc&) {
  return IssuedCalls(calls.size(), fail_without_memory(calls.front()->kept.call()));
}

/// Checks and plans it anew where the plan may be another now. The caller holds the progress lock.
Status Comm::ready_to_start(Persistent& call) {
  if (failure_.happened()) return failure();
  if (left_.load(std::memory_order_relaxed))
    return error(Code::invalid_usage, "the communicator of the prepared call was destroyed");
  if (call.last != nullptr && !call.last->done()) return is_open_still();
  const Call& kept = call.kept.call();
  if (call.plan_generation == plans_.generation()) return {};
  ANYCCL_CHECK(plans_.check(kept));
  if (!kept.is_point_to_point()) ANYCCL_CHECK(check_verifiable(kept));
  if (!kept.is_point_to_point()) {
    ANYCCL_TRY(call.plan, plans_.plan(kept, call.key));
  }
  call.plan_generation = plans_.generation();
  return {};
}

Result<std::shared_ptr<Operation>> Comm::enqueue_again(Persistent& call, Gate gate) {
  ANYCCL_CHECK(ready_to_start(call));
  const Call& kept = call.kept.call();
  loop_.note_limit(kept.timeout);
  call.last = nullptr;
  if (kept.is_point_to_point()) {
    if (call.message != nullptr) messages_.recycle(std::move(call.message));
    call.last = call.message = add_message(kept, gate);
    return call.last;
  }
  if (is_verified_next(kept)) {
    ANYCCL_TRY(call.last, enqueue_verified(kept, call.key, gate));
    return call.last;
  }
  if (call.collective == nullptr || !is_sole_owner(call.collective))
    call.collective = make_queued(kept);
  Queued& queued = *call.collective;
  queued.started = false;
  queued.prepared = call.plan;
  queued.execution.again();
  queued.execution.set(gate);
  queued.execution.limit(kept.timeout);
  queued.scratch.resize(call.plan->scratch_bytes);
  queued.position = next_position(*call.plan);
  record(queued.execution, *call.plan, RecordState::issued, 0, gate.stream);
  plans_.use(kept, call.key, call.plan);
  collectives_.push_back(call.collective);
  call.last = {call.collective, &queued.execution};
  return call.last;
}

}  // namespace anyccl
