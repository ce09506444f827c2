// Operations that are issued without waiting: their places in the queue, and how they go on.

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "framework/communicator/background_progress.hpp"
#include "framework/communicator/communicator.hpp"

namespace anyccl {
Result<std::shared_ptr<Operation>> Comm::issue(const Call& call, Gate gate,
                                               const Deadline& until) try {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (!call.is_point_to_point()) ANYCCL_CHECK(await_turn(progress_lock, call.timeout, until));
  ANYCCL_CHECK(ready(call));
  loop_.note_limit(call.timeout);
  ANYCCL_TRY(std::shared_ptr<Operation> operation, enqueue(call, CallKey(call, me_.rank), gate));
  go_on(gate);
  return operation;
} catch (const std::bad_alloc&) {
  return fail_without_memory(call);
}

Comm::IssuedCalls Comm::issue_all(std::span<const Call* const> calls,
                                  std::span<const Gate> gates) try {
  if (forked()) return IssuedCalls(calls.size(), failure());
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (has_collectives(calls))
    if (Status status = await_turn(progress_lock); !status.ok())
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
    const std::size_t together = queue_.plans().count_fusible(rest);
    const Gate gate = gates.empty() ? Gate::open : common_gate(gates.subspan(first, together));
    const auto operation = together > 1 ? queue_.add_fused(rest.first(together), gate)
                                        : enqueue(*rest[0], CallKey(*rest[0], me_.rank), gate);
    for (std::size_t i = 0; i < together; ++i) issued.push_back(operation);
  }
  return issued;
}

Result<std::shared_ptr<Operation>> Comm::enqueue(const Call& call, const CallKey& key, Gate gate) {
  if (call.is_point_to_point()) return std::shared_ptr<Operation>(add_message(call, gate));
  ANYCCL_TRY(std::shared_ptr<Operation> operation, queue_.add(call, key, gate));
  keep_extra_going();
  return operation;
}

/// A check for which no caller waits goes on in the background; without a thread for that the next
/// call goes on with it.
void Comm::keep_extra_going() {
  if (queue_.take_extra() && me_.background != nullptr)
    static_cast<void>(me_.background->add(shared_from_this()));
}

/// Makes progress after something was issued with an open gate; else only notes that streams use
/// this communicator.
void Comm::go_on(Gate gate) {
  if (gate == Gate::open)
    advance();
  else
    gated_.store(true, std::memory_order_relaxed);
}

bool Comm::advance() {
  bool moved = false;
  if (const Status bad = queue_.advance(moved); !bad.ok()) {
    fail(bad);
    return true;
  }
  return messages_.advance() || moved;
}

/// After a failure, operations on the host are over at once, and one on a device soon: its copies
/// may be under way.
Status Comm::await_device(const Operation& operation) {
  // Nothing that a device does wakes this thread.
  while (!operation.done()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return operation.status();
}

/// Where it ends too early, the status says for which ranks this one waits.
Status Comm::wait(Operation& operation, Deadline deadline, bool noted) {
  if (forked()) return operation.done() ? operation.status() : failure();
  if (noted) note_wait(operation);
  ProgressLock progress_lock = loop_.progress_lock();
  Status status = loop_.wait(progress_lock, operation, deadline);
  if (status.code() != Code::in_progress) {
    if (operation.done() || !operation.is_on_device()) return status;
    if (progress_lock.owns_lock()) progress_lock.unlock();
    return await_device(operation);
  }
  if (!progress_lock.owns_lock()) loop_.lock(progress_lock);
  if (operation.done()) return operation.status();
  if (operation.is_on_device() && !operation.on_host().is_open())
    return error(Code::in_progress,
                 "{}: its stream of the device has not come to it, or its input is on the way",
                 status.message());
  const auto& messages = messages_.waiting();
  std::string text;
  if (std::any_of(messages.begin(), messages.end(),
                  [&](const auto& message) { return message.get() == &operation.on_host(); }))
    text = diagnosis_.report().text(operation.on_host(), nullptr);
  else if (const Execution* const first = queue_.running())
    text = diagnosis_.report().text(*first, first);
  if (text.empty()) return status;
  return error(Code::in_progress, "{}: {}", status.message(), text);
}

}  // namespace anyccl
