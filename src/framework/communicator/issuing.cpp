// Operations that are issued without waiting: their places in the queue, and how they go on.

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "framework/communicator/queued_collective.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kMostSpareFused = 4;  // they keep their memory

/// The gate of an operation that is several calls: the first one that is closed.
Gate common_gate(std::span<const Gate> gates) {
  const auto closed = std::find(gates.begin(), gates.end(), Gate::closed);
  return closed == gates.end() ? Gate::open : *closed;
}

}  // namespace

Result<std::shared_ptr<Operation>> Comm::issue(const Call& call, Gate gate) try {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (!call.is_point_to_point() && loop_.order().is_kept_by_other())
    ANYCCL_CHECK(loop_.await_turn(progress_lock, me_.wait_limits.most_of(call.timeout)));
  ANYCCL_CHECK(ready(call));
  loop_.note_limit(call.timeout);
  ANYCCL_TRY(std::shared_ptr<Operation> operation, enqueue(call, CallKey(call, me_.rank), gate));
  if (gate == Gate::open)
    advance();
  else
    gated_.store(true, std::memory_order_relaxed);
  return operation;
} catch (const std::bad_alloc&) {
  return fail_without_memory(call);
}

Comm::IssuedCalls Comm::issue_all(std::span<const Call* const> calls,
                                  std::span<const Gate> gates) try {
  if (forked()) return IssuedCalls(calls.size(), failure());
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (loop_.order().is_kept_by_other() && has_collectives(calls))
    if (Status status = loop_.await_turn(progress_lock, me_.wait_limits.most); !status.ok())
      return IssuedCalls(calls.size(), std::move(status));
  IssuedCalls issued = enqueue_collectives(calls, gates);
  if (common_gate(gates) == Gate::closed) gated_.store(true, std::memory_order_relaxed);
  advance();
  return issued;
} catch (const std::bad_alloc&) {
  return IssuedCalls(calls.size(), fail_without_memory(*calls.front()));
}

/// Queues those of the calls that are collectives, in their order. The caller holds the progress
/// lock.
Comm::IssuedCalls Comm::enqueue_collectives(std::span<const Call* const> calls,
                                            std::span<const Gate> gates) {
  std::vector<const Call*> todo;
  std::vector<Status> checked;
  for (const Call* call : calls) {
    if (call->is_point_to_point()) continue;
    todo.push_back(call);
    checked.push_back(ready(*call));
    loop_.note_limit(call->timeout);
  }
  IssuedCalls issued;
  while (issued.size() < todo.size()) {
    const std::size_t first = issued.size();
    const auto wrong = std::find_if(checked.begin() + static_cast<std::ptrdiff_t>(first),
                                    checked.end(), [](const Status& s) { return !s.ok(); });
    const auto right = static_cast<std::size_t>(wrong - checked.begin()) - first;
    if (right == 0) {
      issued.push_back(checked[first]);
      continue;
    }
    const auto rest = std::span(todo).subspan(first, right);
    const std::size_t together = plans_.count_fusible(rest);
    const Gate gate = gates.empty() ? Gate::open : common_gate(gates.subspan(first, together));
    const auto operation = together > 1 ? enqueue_fused(rest.first(together), gate)
                                        : enqueue(*rest[0], CallKey(*rest[0], me_.rank), gate);
    for (std::size_t i = 0; i < together; ++i) issued.push_back(operation);
  }
  return issued;
}

Result<std::shared_ptr<Operation>> Comm::enqueue_fused(std::span<const Call* const> calls,
                                                       Gate gate) {
  auto fused = std::make_unique<FusedCall>();
  if (!spare_fused_.empty()) {
    fused = std::move(spare_fused_.back());
    spare_fused_.pop_back();
  }
  fused->begin(calls, me_, shortest_limit(calls, me_.wait_limits.most));
  const Call& call = fused->call();  // stays where it is
  const CallKey key(call, me_.rank, fused->parts());
  return enqueue(call, key, gate, std::move(fused));
}

/// `fused`: what the call stands for, or null.
Result<std::shared_ptr<Operation>> Comm::enqueue(const Call& call, const CallKey& key, Gate gate,
                                                 std::unique_ptr<FusedCall> fused) {
  if (call.is_point_to_point()) return std::shared_ptr<Operation>(add_message(call, gate));
  if (is_verified_next(call)) return enqueue_verified(call, key, gate);
  const auto queued = make_queued(call);
  queued->execution.set(gate);
  queued->execution.limit(call.timeout);
  ANYCCL_TRY(queued->prepared, plans_.find(queued->kept.call(), key,
                                           fused == nullptr ? FusedParts{} : fused->parts()));
  queued->fused = std::move(fused);
  queued->scratch.resize(queued->prepared->scratch_bytes);
  queued->position = next_position(*queued->prepared);
  record(queued->execution, *queued->prepared, RecordState::issued, 0, gate.stream);
  collectives_.push_back(queued);
  return std::shared_ptr<Operation>(queued, &queued->execution);
}

bool Comm::advance() {
  bool moved = false;
  while (!collectives_.empty()) {
    const std::shared_ptr<Queued> head = collectives_.front();
    if (!head->execution.is_open()) break;
    if (!head->started) {
      if (head->prepared->only_gives && !glance().ok()) return true;
      AroundCall* const around = head->around();
      if (around != nullptr) around->before();
      head->execution.start(*head->prepared, head->kept.call(), head->position,
                            head->scratch.data());
      head->execution.end_with(around);
      head->execution.limit(head->execution.time_limit());  // counts from here
      recorder_.start(head->execution.record_number());
    }
    head->started = true;
    // check_stalled() may have finished it, and then its buffers belong to the caller again.
    if (!head->execution.done()) moved = head->execution.advance() || moved;
    if (!head->execution.problem().ok()) {
      fail(head->execution.problem());
      return true;
    }
    if (!head->execution.done()) break;
    if (head->fused != nullptr && spare_fused_.size() < kMostSpareFused)
      spare_fused_.push_back(std::move(head->fused));
    collectives_.pop_front();
  }
  return messages_.advance() || moved;
}

/// Where it ends too early, the status says for which ranks this one waits.
Status Comm::wait(Operation& operation, Deadline deadline, bool noted) {
  if (forked()) return operation.done() ? operation.status() : failure();
  if (noted) note_wait(operation);
  ProgressLock progress_lock = loop_.progress_lock();
  Status status = loop_.wait(progress_lock, operation, deadline);
  if (status.code() != Code::in_progress) return status;
  if (!progress_lock.owns_lock()) loop_.lock(progress_lock);
  if (operation.done()) return operation.status();
  const auto& messages = messages_.waiting();
  std::string text;
  if (std::any_of(messages.begin(), messages.end(),
                  [&](const auto& message) { return message.get() == &operation; })) {
    text = diagnosis_.report().text(operation, nullptr);
  } else if (!collectives_.empty() && collectives_.front()->started) {
    const Execution& first = collectives_.front()->execution;
    text = diagnosis_.report().text(first, &first);
  }
  if (text.empty()) return status;
  return error(Code::in_progress, "{}: {}", status.message(), text);
}

}  // namespace anyccl
