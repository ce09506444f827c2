#include "framework/communicator/communicator.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "framework/communicator/background_progress.hpp"
#include "framework/waiting/interrupt.hpp"

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

Status Comm::run(const Call& call, Handover* handover) {
  if (forked()) return failure();  // before the lock, which a thread of the parent may have held
  std::shared_ptr<Comm> alive;     // longer than the lock, if another thread aborts it meanwhile
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (loop_.order().is_kept_by_other() && !call.is_point_to_point()) [[unlikely]]
    ANYCCL_CHECK(loop_.await_turn(progress_lock, me_.wait_limits.most_of(call.timeout),
                                  handover == nullptr ? Deadline::never() : handover->until()));
  try {
    return run_locked(progress_lock, call, alive, handover);
  } catch (const std::bad_alloc&) {
    if (alive == nullptr) alive = weak_from_this().lock();  // before the lock is given back
    if (progress_lock.owns_lock()) progress_lock.unlock();
    return fail_without_memory(call);
  }
}

Status Comm::run_locked(ProgressLock& progress_lock, const Call& call, std::shared_ptr<Comm>& alive,
                        Handover* handover) {
  if (failure_.happened()) return failure();
  if (call.is_point_to_point())
    return does_at_once(call, poll_budget()) ? Status()
                                             : run_message(progress_lock, call, alive, handover);
  const CallKey key(call, me_.rank);
  PlanCache& plans = queue_.plans();
  if (!plans.is_checked(call, key)) ANYCCL_CHECK(plans.check(call));
  loop_.note_limit(call.timeout);
  if (me_.verify != 0) [[unlikely]]
    ANYCCL_CHECK(queue_.check_verifiable(call));
  if (!is_idle() || queue_.is_verified_next(call)) {
    alive = weak_from_this().lock();
    ANYCCL_TRY(const std::shared_ptr<Operation> operation, enqueue(call, key, Gate::open));
    note_wait(*operation);
    return wait_or_hand_over(progress_lock, operation, handover);
  }
  const PreparedCall* known = plans.find_last(key);
  if (known == nullptr) {
    ANYCCL_TRY(const std::shared_ptr<const PreparedCall> found, plans.find(call, key));
    known = found.get();
  }
  Execution& alone = queue_.run_alone(*known, call);
  if (alone.done()) return known->only_gives ? glance() : alone.status();
  return finish_alone(progress_lock, alone, call, alive, handover);
}

/// Advances what runs alone to its end, unless another thread has a call to make or the call is
/// handed over.
Status Comm::finish_alone(ProgressLock& progress_lock, Execution& alone, const Call& call,
                          std::shared_ptr<Comm>& alive, Handover* handover) {
  const auto queue_it = [&] {
    alive = weak_from_this().lock();
    return wait_or_hand_over(progress_lock, queue_.queue_alone(), handover);
  };
  const bool oversubscribed = loop_.is_oversubscribed(call.threads);
  if (oversubscribed) loop_.oversubscription().refresh_sometimes();
  Backoff backoff(loop_.oversubscription(), oversubscribed, loop_.wait_policy(), alone.kind());
  Interrupt interrupt;
  while (!alone.done()) {
    if (loop_.is_wanted()) return queue_it();
    if (oversubscribed ? alone.advance() : alone.advance_patiently()) {
      backoff.reset();
      continue;
    }
    const bool has_windows = messages_.looks_at_peers();
    if (has_windows && messages_.advance()) continue;  // peers may wait for that
    const Backoff::Next next = backoff.next();
    if (next == Backoff::Next::poll) continue;
    if (Backoff::checks(next)) {
      loop_.oversubscription().refresh();
      Status bad = check_stalled(alone, &alone);
      if (bad.ok()) bad = messages_.problem();
      if (!bad.ok()) fail(bad);
      if (failure_.happened()) return failure();
    }
    const bool has_to_go = handover != nullptr ? handover->until().passed() : interrupt.is_due();
    if (has_to_go || (Backoff::sleeps(next) && has_windows))  // which must end the sleep, too
      return queue_it();
    if (Backoff::sleeps(next)) loop_.sleep(progress_lock, backoff.sleep_time(), &alone);
  }
  return alone.status();
}

Status Comm::wait_or_hand_over(ProgressLock& progress_lock,
                               const std::shared_ptr<Operation>& operation, Handover* handover) {
  Status status =
      loop_.wait(progress_lock, *operation, handover == nullptr ? Deadline() : handover->until());
  if (handover != nullptr && status.code() == Code::in_progress) handover->rest = operation;
  return status;
}

std::shared_ptr<MessageRequest> Comm::add_message(const Call& call, Gate gate) {
  Recorder& recorder = records_.recorder();
  const std::uint64_t number =
      recorder.add(call, gate == Gate::open ? RecordState::running : RecordState::issued,
                   {.position = call.tag, .stream = gate.stream});
  std::shared_ptr<MessageRequest> request = messages_.add(call, gate);
  if (request->done())
    recorder.end(number, request->status().ok());
  else
    request->record_in(recorder, number);
  return request;
}

/// `alive`: for who waits.
Status Comm::run_message(ProgressLock& progress_lock, const Call& call,
                         std::shared_ptr<Comm>& alive, Handover* handover) {
  ANYCCL_CHECK(queue_.plans().check(call));
  loop_.note_limit(call.timeout);
  std::shared_ptr<MessageRequest> request = add_message(call, Gate::open);
  note_wait(*request);
  if (!request->done()) alive = weak_from_this().lock();
  Status status = wait_or_hand_over(progress_lock, request, handover);
  if (progress_lock.owns_lock() && status.code() != Code::in_progress)
    messages_.recycle(std::move(request));
  return status;
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
  std::uint32_t first_budget = poll_budget();  // for the first receive only: it blocks the rest
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
  if (diagnosis_.take_warning()) records_.write_dump([&] { return dump_now("wait"); });
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
  show_receive();
  for (const std::shared_ptr<Operation>& operation : messages_.waiting())
    if (bad.ok() && !operation->done()) bad = check_stalled(*operation, nullptr);
  if (const auto late = messages_.late(); bad.ok() && late != nullptr)
    bad = diagnosis_.check_timeout(*late, nullptr);
  if (bad.ok() && messages_.waits_for_anyone()) bad = diagnosis_.check_any_source();
  if (bad.ok()) bad = messages_.problem();
  if (!bad.ok()) fail(bad);
}

/// Peers that wait for this rank see that it is in no collective, but waits for a message.
void Comm::show_receive() {
  const std::optional<Rank> from =
      loop_.has_waiting() && queue_.empty() ? messages_.awaited_sender() : std::nullopt;
  if (from == shown_receive_) return;
  shown_receive_ = from;
  for (Transport* t : routes_.transports) t->show_receive(from.has_value(), from.value_or(Rank{0}));
}

void Comm::end_wait() {
  if (!shown_receive_) return;
  shown_receive_ = std::nullopt;
  for (Transport* t : routes_.transports) t->show_receive(false, Rank{0});
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
  queue_.limit(operation, time);
  return {};
}

void Comm::open(Operation& operation) {
  operation.open();
  loop_.wake();
  loop_.ring();
}

Status Comm::check_whole(Call call) const {
  if (!exists(call.op)) call.op = ReduceOp::sum;  // created or wrong: run() sees, with the lock
  return queue_.plans().check(call);
}

void Comm::set_policy(TunerPolicy policy) {
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  me_.policy = std::move(policy);
  queue_.plans().forget();
}

Result<double> Comm::predict(const Call& call) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  ANYCCL_CHECK(ready(call));
  return queue_.plans().predict(call);
}

std::size_t Comm::memory_bytes() {
  if (forked()) return 0;
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  return memory_here();
}

/// The caller holds the progress lock.
std::size_t Comm::memory_here() const {
  std::size_t sum = queue_.memory_bytes();
  for (Transport* t : routes_.transports) sum += t->memory_bytes();
  return sum;
}

GivenBack Comm::give_back() {
  if (forked() || failure_.happened()) return GivenBack::all;
  ProgressLock progress_lock = loop_.progress_lock();
  if (!progress_lock.try_lock()) return GivenBack::unread;
  GivenBack worst = GivenBack::all;
  for (Transport* t : routes_.transports) worst = std::max(worst, t->give_back());
  return worst;
}

std::string Comm::last_plan() {
  if (forked()) return "";
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  const std::shared_ptr<const PreparedCall>& last = queue_.plans().last();
  if (last == nullptr) return "";
  const bool has_meaning =
      last->only_lines || me_.size == 1 ||
      std::any_of(routes_.publications.begin(), routes_.publications.end(),
                  [](const Publications* p) { return p->abilities().has_slots; });
  std::string text = fmt::format("{} {} ", id(*last->routed->algorithm),
                                 has_meaning ? name_of(last->protocol()) : "-");
  for (std::size_t i = 0; i < routes_.transports.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? "+" : "", routes_.transports[i]->name());
  if (routes_.transports.empty()) text += "loopback";
  if (const int parts = last->record.parts; parts > 0)
    text += fmt::format(", {}{} calls as one", parts == 255 ? "at least " : "", parts);
  const CallSettings* const settings = last->settings;
  if (const int level = level_of(me_.policy, settings); level != kLevelOfRuns)
    text += fmt::format(", level {}", level);
  const std::uint64_t tag = settings == nullptr ? 0 : settings->tag.load(std::memory_order_relaxed);
  return tag == 0 ? text : fmt::format("{}, tag {}", text, tag);
}

/// The caller holds the progress lock.
Dump Comm::dump_now(std::string_view reason) const {
  std::vector<OpenWait> waits;
  if (const Execution* const alone = queue_.running_alone()) waits.push_back(wait_of(*alone));
  if (const Execution* const first = queue_.running()) waits.push_back(wait_of(*first));
  for (const std::shared_ptr<Operation>& message : messages_.waiting())
    if (!message->done()) waits.push_back(wait_of(*message));
  return records_.dump(reason, queue_.sequence(), failure_.why(), std::move(waits));
}

Result<Dump> Comm::dump() {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  Dump dump = dump_now("call");
  progress_lock.unlock();  // to put long traces into words takes seconds
  records_.write_trace(dump.calls);
  return dump;
}

void Comm::dump_on_signal(Deadline deadline) {
  if (forked()) return;
  ProgressLock progress_lock = loop_.progress_lock();
  if (loop_.lock(progress_lock, deadline)) records_.write_dump([&] { return dump_now("signal"); });
}

std::optional<Metrics> Comm::metrics(Deadline deadline) {
  if (forked()) return Metrics();
  ProgressLock progress_lock = loop_.progress_lock();
  if (!loop_.lock(progress_lock, deadline)) return std::nullopt;
  const bool has_failed = failure_.happened();
  return Metrics{SpentCalls(records_.recorder()), count_completed(), memory_here(), has_failed};
}

}  // namespace anyccl
