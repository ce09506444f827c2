#include "framework/communicator/communicator.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"
#include "framework/communicator/background_progress.hpp"
#include "framework/communicator/queued_collective.hpp"
#include "framework/waiting/interrupt.hpp"

namespace anyccl {

Comm::Comm(Membership membership)
    : me_(std::move(membership)),
      routes_(me_.transports, me_.size),
      plans_(me_, slots_for(me_.size), routes_.publications, routes_.publications_to),
      messages_(me_.rank, routes_.messages_to),
      recorder_(me_.record_entries, !me_.trace_folder.empty()),
      loop_(*this, failure_, routes_.transports, me_.cores_each, me_.waits),
      diagnosis_(me_, routes_, messages_),
      fork_generation_((watch_forks(), anyccl::fork_generation())) {
  alone_ = make_queued({});
  loop_.note_limit(me_.wait_limits.most);
  if (me_.background == nullptr) return;
  for (Transport* t : routes_.transports)
    t->when_grown([this] { me_.background->give_back_later(weak_from_this()); });
}

std::shared_ptr<Comm::Queued> Comm::make_queued(const Call& call) const {
  return std::make_shared<Queued>(KeptCall(call, me_.rank, me_.size), me_.rank, routes_);
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

std::byte* Comm::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes + 64) scratch_.resize(bytes + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch_.data());
  return scratch_.data() + ((address + 63) / 64 * 64 - address);
}

bool Comm::progress_in_background() try {
  return !forked() && loop_.progress_in_background();
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
  if (!plans_.is_checked(call, key)) ANYCCL_CHECK(plans_.check(call));
  loop_.note_limit(call.timeout);
  if (me_.verify != 0) [[unlikely]]
    ANYCCL_CHECK(check_verifiable(call));
  if (!is_idle() || is_verified_next(call)) {
    alive = weak_from_this().lock();
    ANYCCL_TRY(const std::shared_ptr<Operation> operation, enqueue(call, key, Gate::open));
    note_wait(*operation);
    return wait_or_hand_over(progress_lock, operation, handover);
  }
  const PreparedCall* known = plans_.find_last(key);
  if (known == nullptr) {
    ANYCCL_TRY(const std::shared_ptr<const PreparedCall> found, plans_.find(call, key));
    known = found.get();
  }
  const PreparedCall& p = *known;
  Execution& alone = alone_->execution;
  alone.limit(call.timeout);
  const std::uint64_t begin = recorder_.begin();
  alone.start(p, call, next_position(p), p.scratch_bytes == 0 ? nullptr : scratch(p.scratch_bytes));
  // What peers wait for goes first: short calls are recorded when their data is on its way.
  const bool later = p.protocol() == Protocol::ll;
  if (!later) record(alone, p, RecordState::running);
  alone.advance();
  if (later) record(alone, p, RecordState::running, begin);
  if (alone.done()) return p.only_gives ? glance() : alone.status();
  const bool oversubscribed = loop_.is_oversubscribed(call.threads);
  if (oversubscribed) loop_.oversubscription().refresh_sometimes();
  Backoff backoff(loop_.oversubscription(), oversubscribed, loop_.wait_policy(), alone.kind());
  Interrupt interrupt;
  while (!alone.done()) {
    if (loop_.is_wanted()) {
      alive = weak_from_this().lock();
      return wait_or_hand_over(progress_lock, queue_alone(), handover);
    }
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
    if (has_to_go || (Backoff::sleeps(next) && has_windows)) {  // which must end the sleep, too
      alive = weak_from_this().lock();
      return wait_or_hand_over(progress_lock, queue_alone(), handover);
    }
    if (Backoff::sleeps(next)) loop_.sleep(progress_lock, backoff.sleep_time(), &alone);
  }
  return alone.status();
}

/// By a blocking call, when other threads have something to call, too, or when it is handed over:
/// from now on it is one that was issued, so that what is called next has a place behind it.
std::shared_ptr<Operation> Comm::queue_alone() {
  const std::shared_ptr<Queued> mine = std::exchange(alone_, make_queued({}));
  mine->prepared = plans_.last();
  mine->scratch = std::move(scratch_);  // and stays where it is
  mine->started = true;
  collectives_.push_back(mine);
  return {mine, &mine->execution};
}

Status Comm::wait_or_hand_over(ProgressLock& progress_lock,
                               const std::shared_ptr<Operation>& operation, Handover* handover) {
  Status status =
      loop_.wait(progress_lock, *operation, handover == nullptr ? Deadline() : handover->until());
  if (handover != nullptr && status.code() == Code::in_progress) handover->rest = operation;
  return status;
}

std::shared_ptr<MessageRequest> Comm::add_message(const Call& call, Gate gate) {
  const std::uint64_t number =
      recorder_.add(call, gate == Gate::open ? RecordState::running : RecordState::issued,
                    {.position = call.tag, .stream = gate.stream});
  std::shared_ptr<MessageRequest> request = messages_.add(call, gate);
  if (request->done())
    recorder_.end(number, request->status().ok());
  else
    request->record_in(recorder_, number);
  return request;
}

/// `alive`: for who waits.
Status Comm::run_message(ProgressLock& progress_lock, const Call& call,
                         std::shared_ptr<Comm>& alive, Handover* handover) {
  ANYCCL_CHECK(plans_.check(call));
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
  if (loop_.order().is_kept_by_other() && has_collectives(calls))
    ANYCCL_CHECK(loop_.await_turn(progress_lock, me_.wait_limits.most));
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
  if (diagnosis_.take_warning()) dump_by_itself("wait");
  return problem;
}

void Comm::diagnose() {
  loop_.oversubscription().refresh();
  if (failure_.happened()) return;
  Status bad;
  if (!collectives_.empty()) {
    Execution& head = collectives_.front()->execution;
    bad = collectives_.front()->started ? check_stalled(head, &head) : diagnosis_.poll_control();
  }
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
      loop_.has_waiting() && collectives_.empty() ? messages_.awaited_sender() : std::nullopt;
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
  if (!operation.done()) progress();
  return operation.done();
}

Status Comm::limit(Operation& operation, std::chrono::milliseconds time) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  loop_.note_limit(time);
  operation.limit(time);
  for (const auto& queued : collectives_)  // what is verified has the limit of its check
    if (queued->check != nullptr && &queued->check->execution == &operation)
      queued->execution.limit(time);
  return {};
}

void Comm::open(Operation& operation) {
  operation.open();
  loop_.wake();
  loop_.ring();
}

Status Comm::absence(std::span<const Rank> wanted) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (failure_.happened()) return failure();
  Status bad = diagnosis_.reported(), absent;
  if (bad.ok()) absent = diagnosis_.absence(wanted);
  if (!absent.ok()) bad = diagnosis_.reported();
  if (!bad.ok()) fail(bad);
  return bad.ok() ? absent : failure();
}

Status Comm::check_whole(Call call) const {
  if (!exists(call.op)) call.op = ReduceOp::sum;  // created or wrong: run() sees, with the lock
  return plans_.check(call);
}

void Comm::set_policy(TunerPolicy policy) {
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  me_.policy = std::move(policy);
  plans_.forget();
}

Result<double> Comm::predict(const Call& call) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  ANYCCL_CHECK(ready(call));
  return plans_.predict(call);
}

std::size_t Comm::memory_bytes() {
  if (forked()) return 0;
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  return memory_here();
}

/// The caller holds the progress lock.
std::size_t Comm::memory_here() const {
  std::size_t sum = scratch_.capacity();
  for (Transport* t : routes_.transports) sum += t->memory_bytes();
  for (const auto& queued : collectives_) sum += queued->scratch.capacity();
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
  const std::shared_ptr<const PreparedCall>& last = plans_.last();
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

}  // namespace anyccl
