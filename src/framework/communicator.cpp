#include "framework/communicator.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kCacheEntries = 64;
constexpr std::size_t kMinTile = 4096;
constexpr std::uint32_t kTilesInFlight = 2;

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0x9E3779B97F4A7C15ULL;
  return h ^ h >> 29;
}

std::uint32_t digest_of(const CallRecord& record) {
  std::uint64_t head = 0;
  std::memcpy(&head, &record.collective, sizeof head);
  const std::uint64_t h = mix(mix(mix(1, head), record.count), record.plan);
  return static_cast<std::uint32_t>(h ^ h >> 32);
}

std::uint64_t plan_identity(const Algorithm& algorithm, std::size_t tile_bytes,
                            std::uint32_t lanes) {
  std::uint64_t h = mix(tile_bytes, lanes);
  for (const char c : id(algorithm)) h = mix(h, static_cast<unsigned char>(c));
  return h;
}

std::size_t cache_slot(const Call& call) {
  std::uint64_t h =
      mix(call.count, static_cast<std::uint64_t>(call.collective) << 24 |
                          static_cast<std::uint64_t>(call.dtype) << 16 |
                          static_cast<std::uint64_t>(call.op) << 8 | (call.in_place() ? 1U : 0U));
  h = mix(h, uindex(call.root));
  return h % kCacheEntries;
}

bool overlap(const std::byte* a, const std::byte* b, std::size_t bytes) {
  return a != b && bytes > 0 && a < b + bytes && b < a + bytes;
}

}  // namespace

std::uint32_t slots_for(int size) {
  return std::max(16U, std::bit_ceil(2 * static_cast<std::uint32_t>(size)));
}

/// Holds the right to make progress. One read-modify-write on a line that stays in this core's
/// cache.
class Comm::Token {
 public:
  explicit Token(std::atomic<bool>& token) : token_(token) {}
  ~Token() { release(); }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  bool try_take() { return held_ = !token_.exchange(true, std::memory_order_acquire); }
  void take() {
    while (!try_take()) ::sched_yield();
  }
  void release() {
    if (held_) token_.store(false, std::memory_order_release);
    held_ = false;
  }

 private:
  std::atomic<bool>& token_;
  bool held_ = false;
};

/// A collective that was issued without waiting: everything it needs is its own.
struct Comm::Queued final : public Task {
  Queued(Rank me, const std::vector<Transport*>& route, const std::vector<Transport*>& transports)
      : execution(me, route, transports) {}
  bool advance() override { return execution.advance(); }
  void awaited(std::vector<Rank>& ranks) const override { execution.awaited(ranks); }

  Call call;
  std::vector<std::size_t> table;  // the four arrays of a v-form
  std::shared_ptr<const Prepared> prepared;
  std::vector<std::byte> scratch;
  std::uint64_t sequence = 0;
  bool started = false;
  Execution execution;
};

Comm::Comm(Membership membership)
    : me_(std::move(membership)),
      route_(static_cast<std::size_t>(me_.size)),
      slots_(slots_for(me_.size)),
      cache_(kCacheEntries),
      alone_(me_.rank, route_, transports_),
      pairs_(static_cast<std::size_t>(me_.size)),
      fork_generation_(anyccl::fork_generation()) {
  for (const auto& t : me_.transports) {
    transports_.push_back(t.get());
    for (const Rank r : t->peers()) route_[uindex(r)] = t.get();
  }
}

Status Comm::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

Status Comm::usable() const {
  if (anyccl::fork_generation() != fork_generation_)
    return error(
        Code::invalid_usage,
        "this communicator was created before fork; create it in the process that uses it");
  return failure();
}

Status Comm::check_call(const Call& call) const {
  const std::size_t element = bytes_of(call.dtype);
  if (element == 0)
    return error(Code::invalid_argument, "datatype {} does not exist",
                 static_cast<int>(call.dtype));
  if (call.op > ReduceOp::avg)
    return error(Code::invalid_argument, "op {} does not exist", static_cast<int>(call.op));
  if (call.count > (std::size_t{1} << 62) / element)
    return error(Code::invalid_argument, "count {} of {} is negative or overflows", call.count,
                 name_of(call.dtype));
  if (index(call.root) < 0 || index(call.root) >= me_.size)
    return error(Code::invalid_argument, "{} {} is not a rank of this communicator of {}",
                 call.is_point_to_point() ? "peer" : "root", index(call.root), me_.size);
  if (call.count == 0) return {};
  const bool reads = call.collective != Collective::recv &&
                     (call.collective != Collective::broadcast || call.root == me_.rank);
  if (reads && call.input == nullptr)
    return error(Code::invalid_argument, "sendbuff is NULL and count is {}", call.count);
  if (call.collective != Collective::send && call.output == nullptr)
    return error(Code::invalid_argument, "recvbuff is NULL and count is {}", call.count);
  if (reads && call.output != nullptr && overlap(call.input, call.output, call.count * element))
    return error(Code::invalid_argument,
                 "sendbuff {} and recvbuff {} overlap but are not equal ({} bytes)",
                 fmt::ptr(call.input), fmt::ptr(call.output), call.count * element);
  return {};
}

Result<const Program*> Comm::program(const Algorithm& algorithm, const Call& call) {
  Shape shape{call.collective, me_.size, is_rooted(call.collective) ? call.root : Rank{0},
              call.in_place(), me_.host_of};
  for (std::size_t i = 0; i < programs_.size(); ++i)
    if (programs_[i]->algorithm == &algorithm && program_shapes_[i].root == shape.root &&
        program_shapes_[i].in_place == shape.in_place)
      return programs_[i].get();
  ANYCCL_TRY(std::unique_ptr<Program> made,
             make_program(algorithm, shape, me_.rank, route_, slots_));
  programs_.push_back(std::move(made));
  program_shapes_.push_back(std::move(shape));
  return programs_.back().get();
}

Result<std::shared_ptr<const Prepared>> Comm::prepare(const Call& call) {
  if (call.collective == Collective::all_to_all_v) return prepare_fresh(call);
  Cached& entry = cache_[cache_slot(call)];
  const bool hit = entry.count == call.count && entry.collective == call.collective &&
                   entry.dtype == call.dtype && entry.op == call.op && entry.root == call.root &&
                   entry.in_place == call.in_place();
  if (!hit) {
    ANYCCL_TRY(auto fresh, prepare_fresh(call));
    entry = {call.collective, call.dtype, call.op,         call.root,
             call.in_place(), call.count, std::move(fresh)};
  }
  return entry.prepared;
}

Result<std::shared_ptr<const Prepared>> Comm::prepare_fresh(const Call& call) {
  const bool pairs = call.collective == Collective::all_to_all_v;
  auto prepared = std::make_shared<Prepared>();
  prepared->element = bytes_of(call.dtype);
  if (call.collective == Collective::all_reduce || call.collective == Collective::barrier) {
    ANYCCL_TRY(prepared->kernel, reduce_kernel(call.dtype, call.op));
  }
  const std::size_t bytes = call.count * prepared->element;
  Question question{
      {call.collective, me_.size, call.root, false, me_.host_of}, pairs ? 0 : bytes, false};
  question.network = me_.network;
  ANYCCL_TRY(const Choice choice, choose(question, me_.algorithm));
  ANYCCL_TRY(prepared->program, program(*choice.algorithm, call));

  const Plan& plan = prepared->program->plan;
  const std::uint32_t publications =
      std::max(1U, *std::max_element(plan.publications.begin(), plan.publications.end()));
  prepared->lanes = std::clamp(slots_ / publications, 1U, kTilesInFlight);
  // Everything in flight, and the tile before it, must fit the ring.
  const std::uint32_t parts = pairs ? 1 : plan.schedule.contract.parts();
  const std::size_t published = std::max<std::size_t>(1, prepared->program->most_published);
  const std::size_t most = kRingBytes * parts / (published * (prepared->lanes + 1));
  std::size_t tile = std::max(kMinTile, std::min(choice.tile_bytes, most) / kMinTile * kMinTile);
  if (me_.low_latency) tile = 56;
  prepared->geometry = pairs ? Geometry::of_pairs(plan.schedule.contract, call, me_.rank, tile)
                             : Geometry::of_vector(plan.schedule.contract, bytes, tile);
  if (!pairs && prepared->geometry.tiles() == 1) prepared->lanes = 1;

  prepared->record = {0,
                      static_cast<std::uint8_t>(call.collective),
                      static_cast<std::uint8_t>(call.dtype),
                      static_cast<std::uint8_t>(call.op),
                      0,
                      index(call.root),
                      call.count,
                      plan_identity(*choice.algorithm, tile, prepared->lanes)};
  prepared->digest = digest_of(prepared->record);
  if (!pairs) {
    bind(*prepared->program, prepared->geometry, prepared->geometry.tiles() - 1, prepared->last);
    if (prepared->geometry.tiles() > 1)
      bind(*prepared->program, prepared->geometry, 0, prepared->full);
  }
  return std::shared_ptr<const Prepared>(std::move(prepared));
}

std::byte* Comm::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes + 64) scratch_.resize(bytes + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch_.data());
  return scratch_.data() + ((address + 63) / 64 * 64 - address);
}

Status Comm::run(const Call& call) {
  Token token(token_);
  token.take();
  ANYCCL_CHECK(usable());
  ANYCCL_CHECK(check_call(call));
  if (call.is_point_to_point() || !idle()) {
    ANYCCL_TRY(const std::shared_ptr<Task> task, enqueue(call));
    token.release();
    return wait(*task);
  }
  auto prepared = prepare(call);
  if (!prepared.ok()) return prepared.status();
  last_ = *std::move(prepared);
  const Prepared& p = *last_;
  alone_.start(p, call, ++sequence_, scratch(Execution::scratch_bytes(p)));
  alone_.advance();
  if (alone_.done()) return alone_.status();
  Waiter waiter(me_.crowded_here);
  while (!alone_.done()) {
    if (alone_.advance()) {
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next == Waiter::Next::poll) continue;
    if (const Status bad = trouble(alone_, &alone_); !bad.ok()) fail_locked(bad);
    if (failed_.load(std::memory_order_relaxed)) return failure();
    if (next == Waiter::Next::sleep) sleep_shortly();
  }
  return alone_.status();
}

Result<std::shared_ptr<Task>> Comm::issue(const Call& call) {
  Token token(token_);
  token.take();
  ANYCCL_CHECK(usable());
  ANYCCL_CHECK(check_call(call));
  ANYCCL_TRY(std::shared_ptr<Task> task, enqueue(call));
  progress_locked();
  return task;
}

Result<std::shared_ptr<Task>> Comm::enqueue(const Call& call) {
  if (call.is_point_to_point()) return enqueue_transfer(call);
  auto queued = std::make_shared<Queued>(me_.rank, route_, transports_);
  queued->call = call;
  if (call.collective == Collective::all_to_all_v) {
    const auto n = static_cast<std::size_t>(me_.size);
    for (const std::size_t* array :
         {call.send_counts, call.send_displs, call.recv_counts, call.recv_displs})
      queued->table.insert(queued->table.end(), array, array + n);
    const std::size_t* table = queued->table.data();
    queued->call.send_counts = table, queued->call.send_displs = table + n;
    queued->call.recv_counts = table + 2 * n, queued->call.recv_displs = table + 3 * n;
  }
  ANYCCL_TRY(queued->prepared, prepare(queued->call));
  queued->scratch.resize(Execution::scratch_bytes(*queued->prepared));
  queued->sequence = ++sequence_;
  last_ = queued->prepared;
  collectives_.push_back(queued);
  return std::shared_ptr<Task>(queued, &queued->execution);
}

Result<std::shared_ptr<Task>> Comm::enqueue_transfer(const Call& call) {
  const bool sends = call.collective == Collective::send;
  if (call.root == me_.rank) {
    auto task = std::make_shared<SelfTransfer>();
    (sends ? self_sends_ : self_receives_).push_back({call, task});
    ANYCCL_CHECK(match_self());
    return std::shared_ptr<Task>(task);
  }
  Pair& pair = pairs_[uindex(call.root)];
  auto task = std::make_shared<Transfer>(call, *route_[uindex(call.root)],
                                         sends ? ++pair.sent : ++pair.received);
  (sends ? pair.sends : pair.receives).push_back(task);
  ++open_transfers_;
  return std::shared_ptr<Task>(task);
}

Status Comm::match_self() {
  while (!self_sends_.empty() && !self_receives_.empty()) {
    const SelfMessage from = std::move(self_sends_.front()), to = std::move(self_receives_.front());
    self_sends_.pop_front();
    self_receives_.pop_front();
    Status status;
    if (from.call.count != to.call.count || from.call.dtype != to.call.dtype)
      status = error(Code::invalid_usage, "rank {} sends {} {} to itself but receives {} {}",
                     index(me_.rank), from.call.count, name_of(from.call.dtype), to.call.count,
                     name_of(to.call.dtype));
    else if (from.call.count > 0)
      std::memmove(to.call.output, from.call.input, from.call.count * bytes_of(from.call.dtype));
    from.task->complete(status);
    to.task->complete(status);
  }
  return {};
}

bool Comm::progress_locked() {
  bool moved = false;
  while (!collectives_.empty()) {
    const std::shared_ptr<Queued> head = collectives_.front();
    if (!head->started)
      head->execution.start(*head->prepared, head->call, head->sequence, head->scratch.data());
    head->started = true;
    moved = head->execution.advance() || moved;
    if (!head->execution.done()) break;
    collectives_.pop_front();
  }
  if (open_transfers_ == 0) return moved;
  for (Pair& pair : pairs_)
    for (auto* queue : {&pair.receives, &pair.sends})
      while (!queue->empty()) {
        moved = queue->front()->advance() || moved;
        if (!queue->front()->done()) break;
        queue->pop_front();
        --open_transfers_;
      }
  return moved;
}

bool Comm::progress() {
  Token token(token_);
  return token.try_take() && !failed_.load(std::memory_order_relaxed) && progress_locked();
}

void Comm::examine() {
  Token token(token_);
  if (token.try_take()) examine_locked();
}

void Comm::examine_locked() {
  if (failed_.load(std::memory_order_relaxed)) return;
  Status bad;
  if (!collectives_.empty() && collectives_.front()->started) {
    Execution& head = collectives_.front()->execution;
    bad = trouble(head, &head);
  }
  if (bad.ok() && open_transfers_ > 0)
    for (const Pair& pair : pairs_)
      for (const auto* queue : {&pair.receives, &pair.sends})
        if (bad.ok() && !queue->empty()) bad = trouble(*queue->front(), nullptr);
  if (!bad.ok()) fail_locked(bad);
}

/// Why a task that does not move never will, as far as can be seen now. `collective`: the same
/// task, if it is one.
Status Comm::trouble(Task& task, const Execution* collective) {
  if (abort_asked_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
  }
  Status problem;
  for (Transport* t : transports_)
    if (Status found = t->check(); problem.ok()) problem = std::move(found);
  if (collective != nullptr) ANYCCL_CHECK(compare_calls(collective->record()));
  if (!problem.ok() && !may_still_be_explained(problem)) return problem;
  std::vector<Rank> ranks;
  task.awaited(ranks);
  const auto gone = std::find_if(ranks.begin(), ranks.end(), [&](Rank r) {
    Transport* t = route_[uindex(r)];
    return t != nullptr && t->state(r) != PeerState::present;
  });
  if (gone == ranks.end()) return {};
  const PeerState state = route_[uindex(*gone)]->state(*gone);
  // What it did before it went can be seen by now: if that is not enough, nothing will be.
  if (task.advance() || task.done()) return {};
  const std::string what = collective == nullptr
                               ? "in a send or receive"
                               : fmt::format("in operation {}, {}", collective->sequence(),
                                             describe(collective->record()));
  return error(Code::remote_error, "{} {} while {} waits for it {}", me_.names[uindex(*gone)],
               state == PeerState::left ? "has left the communicator" : "died",
               me_.names[uindex(me_.rank)], what);
}

/// A transport sees that a peer is in another call before it knows which one. The peer's record is
/// on its way and says more, so it gets a moment.
bool Comm::may_still_be_explained(const Status& problem) {
  if (problem.code() != Code::invalid_usage) return false;
  if (puzzled_until_.is_never()) puzzled_until_ = Deadline::in(std::chrono::milliseconds(500));
  return !puzzled_until_.passed();
}

Status Comm::compare_calls(const CallRecord& mine) {
  for (int r = 0; r < me_.size; ++r) {
    Transport* t = route_[static_cast<std::size_t>(r)];
    CallRecord theirs;
    if (t == nullptr || !t->call_of(Rank{r}, mine.sequence, theirs) || theirs == mine) continue;
    const bool plans_only = theirs.collective == mine.collective && theirs.dtype == mine.dtype &&
                            theirs.op == mine.op && theirs.root == mine.root &&
                            theirs.count == mine.count;
    return error(Code::invalid_usage,
                 "operation {} differs between ranks: rank {} called {}, rank {} called {}{}",
                 mine.sequence, index(me_.rank), describe(mine), r, describe(theirs),
                 plans_only ? " (with another algorithm or protocol)" : "");
  }
  return {};
}

void Comm::fail_locked(const Status& why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_.ok() && failed_.load(std::memory_order_relaxed)) return;
    if (failure_.ok()) failure_ = why;
  }
  failed_.store(true, std::memory_order_release);
  log(LogLevel::info, "{}: {}", me_.names[uindex(me_.rank)], why.message());
  for (Transport* t : transports_) t->abort(why);
  const Status status = failure();
  for (const auto& queued : collectives_)
    if (!queued->execution.done()) queued->execution.complete(status);
  collectives_.clear();
  for (Pair& pair : pairs_)
    for (auto* queue : {&pair.receives, &pair.sends}) {
      for (const auto& transfer : *queue) transfer->complete(status);
      queue->clear();
    }
  for (auto* messages : {&self_sends_, &self_receives_}) {
    for (const SelfMessage& m : *messages) m.task->complete(status);
    messages->clear();
  }
  open_transfers_ = 0;
}

Status Comm::wait(Task& task) {
  Waiter waiter(me_.crowded_here);
  while (!task.done()) {
    Waiter::Next next = Waiter::Next::poll;
    Token token(token_);
    if (token.try_take()) {
      if (failed_.load(std::memory_order_relaxed)) break;
      if (progress_locked()) {
        waiter.reset();
        continue;
      }
      next = waiter.next();
      if (next != Waiter::Next::poll) examine_locked();
      if (next == Waiter::Next::sleep && !task.done()) sleep_shortly();
    } else {
      ::sched_yield();
    }
  }
  return task.done() ? task.status() : failure();
}

bool Comm::test(Task& task) {
  if (!task.done()) progress();
  return task.done();
}

void Comm::sleep_shortly() {
  if (!transports_.empty()) transports_.back()->sleep(Waiter::sleep_time());
}

void Comm::abort(const Status& why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_.ok()) failure_ = why;
  }
  abort_asked_.store(true, std::memory_order_release);
  for (Transport* t : transports_) t->abort(why);
  Token token(token_);
  token.take();  // who holds it looks at abort_asked_ within milliseconds
  if (!failed_.load(std::memory_order_relaxed)) fail_locked(failure_);
}

void Comm::finish() {
  Waiter waiter(me_.crowded_here);
  for (;;) {
    Token token(token_);
    token.take();
    if (failed_.load(std::memory_order_relaxed) || idle()) break;
    if (progress_locked()) {
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next != Waiter::Next::poll) examine_locked();
    if (next == Waiter::Next::sleep) sleep_shortly();
  }
  leave();
}

void Comm::leave() {
  if (anyccl::fork_generation() != fork_generation_) return;  // the parent's peers are not ours
  for (Transport* t : transports_) t->leave();
}

std::string Comm::last_plan() {
  Token token(token_);
  token.take();
  if (last_ == nullptr) return "";
  const Bound& bound = last_->last;
  std::size_t largest = 0;
  for (const BoundStep& step : bound.steps) largest = std::max(largest, step.out_bytes);
  const bool pairs = last_->geometry.pairs();
  std::string text = id(*last_->program->algorithm) +
                     (!pairs && !me_.simple && largest <= 56 ? " LL " : " Simple ");
  for (std::size_t i = 0; i < transports_.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? "+" : "", transports_[i]->name());
  return transports_.empty() ? text + "loopback" : text;
}

}  // namespace anyccl
