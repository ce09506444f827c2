#include "framework/communicator/communicator.hpp"

#include <new>
#include <utility>

#include "base/error.hpp"
#include "framework/communicator/background_progress.hpp"
#include "framework/communicator/comm_report.hpp"

namespace anyccl {

Comm::Comm(Membership membership)
    : me_(std::move(membership)),
      routes_(me_.transports, me_.size),
      records_(me_, routes_),
      messages_(me_.rank, routes_.messages_to),
      diagnosis_(me_, routes_, messages_),
      queue_(me_, routes_, records_, diagnosis_),
      loop_(*this, failure_, routes_.transports, me_.cores_each, me_.waits) {
  loop_.note_limit(me_.wait_limits.most);
  if (me_.background == nullptr) return;
  for (Transport* t : routes_.transports)
    t->when_grown([this] { me_.background->give_back_later(weak_from_this()); });
}

Comm::~Comm() {
  if (me_.around != nullptr && !forked())
    me_.around->note_ended(me_, SpentCalls(records_.recorder()));
}

Status Comm::failure() const {
  if (forked())
    return error(
        Code::invalid_usage,
        "this communicator was created before fork; create it in the process that uses it");
  if (!failure_.happened()) return {};
  told_.store(true, std::memory_order_relaxed);
  return failure_.why();
}

bool Comm::progress_in_background() try {
  return loop_.progress_in_background();
} catch (const std::bad_alloc&) {  // the progress lock is free
  abort(error(Code::system_error, "{} has no memory for operations in the background",
              me_.names[uindex(me_.rank)]));
  return false;
}

std::shared_ptr<MessageRequest> Comm::add_message(const Call& call, Gate gate,
                                                  std::optional<AroundCall*> in_queues) {
  Recorder& recorder = records_.recorder();
  const std::uint64_t number =
      recorder.add(call, gate == Gate::open ? RecordState::running : RecordState::issued,
                   {.position = call.tag, .stream = gate.stream});
  std::shared_ptr<MessageRequest> request = messages_.add(call, gate, in_queues);
  if (request->done())
    recorder.end(number, request->status().ok());
  else
    request->record_in(recorder, number);
  return request;
}

Status Comm::run_together(std::span<const Call* const> calls) try {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (has_collectives(calls)) ANYCCL_CHECK(await_turn(progress_lock));
  std::vector<std::shared_ptr<MessageRequest>> messages = std::move(together_);
  std::vector<std::shared_ptr<Operation>> others;
  Status first;
  const auto note = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  std::uint32_t first_budget = loop_.poll_budget();  // of the first receive, which blocks the rest
  const auto issue_messages = [&](Collective kind) {
    for (const Call* call : calls) {
      if (call->collective != kind) continue;
      const std::uint32_t poll_budget =
          kind == Collective::recv ? std::exchange(first_budget, 1) : 1;
      if (!failure_.happened() && does_at_once(*call, poll_budget)) continue;
      loop_.note_limit(call->timeout);
      Status status = ready(*call);
      if (status.ok()) messages.push_back(add_message(*call, Gate::open));
      note(std::move(status));
    }
  };
  issue_messages(Collective::send);
  for (auto& operation : enqueue_collectives(calls, {})) {
    note(operation.status());
    if (operation.ok()) others.push_back(*std::move(operation));
  }
  issue_messages(Collective::recv);  // who looks for a message should have sent its own before
  for (const auto& operation : others) note_wait(*operation);
  for (const auto& message : messages) note_wait(*message);
  for (const auto& operation : others) note(loop_.wait(progress_lock, *operation));
  for (const auto& message : messages) note(loop_.wait(progress_lock, *message));
  if (progress_lock.owns_lock()) {
    for (auto& message : messages) messages_.recycle(std::move(message));
    messages.clear();
    together_ = std::move(messages);
  }
  return first;
} catch (const std::bad_alloc&) {
  return fail_without_memory(*calls.front());
}

Status Comm::check_stalled(Operation& operation, const Execution* collective) {
  if (failure_.is_asked()) return failure_.why();
  Status problem = diagnosis_.check_stalled(operation, collective);
  if (diagnosis_.take_warning())
    records_.write_dump([&] { return CommReport(*this).dump_here("wait"); });
  return problem;
}

void Comm::diagnose() {
  loop_.oversubscription().refresh();
  if (failure_.happened()) return;
  Status bad;
  if (Execution* const head = queue_.running())
    bad = check_stalled(*head, head);
  else if (!queue_.empty())
    bad = diagnosis_.poll_control();
  diagnosis_.show_receive(loop_.has_waiting() && queue_.empty() ? messages_.awaited_sender()
                                                                : std::nullopt);
  for (const std::shared_ptr<Operation>& operation : messages_.waiting())
    if (bad.ok() && !operation->done()) bad = check_stalled(*operation, nullptr);
  if (const auto late = messages_.late(); bad.ok() && late != nullptr)
    bad = diagnosis_.check_timeout(*late, nullptr);
  if (bad.ok() && messages_.waits_for_anyone()) bad = diagnosis_.check_any_source();
  if (bad.ok()) bad = messages_.problem();
  if (!bad.ok()) fail(bad);
}

void Comm::wait_any(std::span<const std::shared_ptr<Operation>> operations, Deadline deadline) {
  if (forked()) return;
  for (const auto& operation : operations) note_wait(*operation);
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.wait_any(progress_lock, operations, deadline);
}

bool Comm::test(Operation& operation) {
  if (!operation.done()) loop_.progress();
  return operation.done();
}

Status Comm::limit(Operation& operation, std::chrono::milliseconds time) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  loop_.note_limit(time);
  if (!operation.keeps_limit(time)) queue_.limit(operation.on_host(), time);
  return {};
}

void Comm::open(Operation& operation) {
  operation.open();
  loop_.wake();
  loop_.ring();
}

}  // namespace anyccl
