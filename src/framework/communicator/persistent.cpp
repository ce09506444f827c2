#include "framework/communicator/persistent.hpp"

#include <algorithm>
#include <new>

#include "base/error.hpp"

namespace anyccl {

Status is_open_still() {
  return error(Code::invalid_usage, "the prepared call was started before and is not complete yet");
}

PersistentRequest::PersistentRequest(Comm& comm, const Call& call)
    : comm_(comm),
      kept_(call, comm.rank(), comm.size()),
      key_(call.is_point_to_point() ? CallKey() : CallKey(kept_.call(), comm.rank())) {}

Result<std::shared_ptr<PersistentRequest>> PersistentRequest::prepare(Comm& comm,
                                                                      const Call& call) {
  if (comm.forked()) return comm.failure();
  ProgressLock progress_lock = comm.loop_.progress_lock();
  comm.loop_.lock(progress_lock);
  ANYCCL_CHECK(comm.ready(call));
  auto persistent = std::make_shared<PersistentRequest>(comm, call);
  persistent->op_ = comm.operators().hold(call.op);
  ANYCCL_CHECK(persistent->ready());
  return persistent;
}

Result<std::shared_ptr<Operation>> PersistentRequest::start(Gate gate) try {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  if (!is_message()) ANYCCL_CHECK(comm_.await_turn(progress_lock, kept_.call().timeout));
  ANYCCL_TRY(std::shared_ptr<Operation> operation, enqueue(gate));
  comm_.go_on(gate);
  return operation;
} catch (const std::bad_alloc&) {
  return comm_.fail_without_memory(kept_.call());
}

Comm::IssuedCalls PersistentRequest::start_all(std::span<PersistentRequest* const> calls,
                                               std::span<const Gate> gates) {
  Comm& comm = calls.front()->comm_;
  if (comm.forked()) return Comm::IssuedCalls(calls.size(), comm.failure());
  try {
    ProgressLock progress_lock = comm.loop_.progress_lock();
    comm.loop_.lock(progress_lock);
    const bool all_are_messages = std::ranges::all_of(
        calls, [](const PersistentRequest* call) { return call->is_message(); });
    if (!all_are_messages)
      if (Status status = comm.await_turn(progress_lock); !status.ok())
        return Comm::IssuedCalls(calls.size(), std::move(status));
    Comm::IssuedCalls started(calls.size(), Status());
    std::vector<std::size_t> collectives;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i]->is_message())
        started[i] = calls[i]->enqueue(gates[i]);
      else if (Status status = calls[i]->ready(); !status.ok())
        started[i] = std::move(status);
      else if (std::exchange(calls[i]->is_taken_, true))
        started[i] = is_open_still();
      else
        collectives.push_back(i);
      comm.loop_.note_limit(calls[i]->kept_.call().timeout);
    }
    std::vector<const Call*> todo;
    std::vector<Gate> their_gates;
    for (const std::size_t i : collectives) {
      calls[i]->is_taken_ = false;
      todo.push_back(&calls[i]->kept_.call());
      their_gates.push_back(gates[i]);
    }
    for (std::size_t first = 0, count = 0; first < todo.size(); first += count) {
      const auto rest = std::span(todo).subspan(first);
      count = comm.queue_.plans().count_fusible(rest);
      const Gate gate = common_gate(std::span(their_gates).subspan(first, count));
      const auto operation = count > 1 ? comm.queue_.add_fused(rest.first(count), gate)
                                       : calls[collectives[first]]->enqueue(gate);
      for (std::size_t i = first; i < first + count; ++i) {
        started[collectives[i]] = operation;
        if (operation.ok()) calls[collectives[i]]->last_ = *operation;
      }
    }
    if (common_gate(gates) == Gate::closed) comm.gated_.store(true, std::memory_order_relaxed);
    comm.advance();
    return started;
  } catch (const std::bad_alloc&) {
    return Comm::IssuedCalls(calls.size(), comm.fail_without_memory(calls.front()->kept_.call()));
  }
}

Status PersistentRequest::check_alive() const {
  ANYCCL_CHECK(comm_.failure());
  if (comm_.left_.load(std::memory_order_relaxed))
    return error(Code::invalid_usage, "the communicator of the prepared call was destroyed");
  return {};
}

/// Returns an error while the last start is not complete, and after the end of the communicator.
/// Else checks and plans it anew where the plan may be another now; with the progress lock.
Status PersistentRequest::ready() {
  ANYCCL_CHECK(check_alive());
  if (last_ != nullptr && !last_->done()) return is_open_still();
  const Call& call = kept_.call();
  PlanCache& plans = comm_.queue_.plans();
  if (plan_generation_ == plans.generation()) return {};
  ANYCCL_CHECK(plans.check(call));
  if (!is_message()) {
    ANYCCL_CHECK(comm_.queue_.check_verifiable(call));
    ANYCCL_TRY(plan_, plans.plan(call, key_));
  }
  plan_generation_ = plans.generation();
  return {};
}

Result<std::shared_ptr<Operation>> PersistentRequest::enqueue(Gate gate) {
  ANYCCL_CHECK(ready());
  const Call& call = kept_.call();
  comm_.loop_.note_limit(call.timeout);
  last_ = nullptr;
  if (is_message()) {
    if (message_ != nullptr) comm_.messages_.recycle(std::move(message_));
    last_ = message_ = comm_.add_message(call, gate);
    return last_;
  }
  ANYCCL_TRY(last_, comm_.queue_.add_again(collective_, call, key_, plan_, gate));
  comm_.keep_extra_going();
  return last_;
}

}  // namespace anyccl
