#include "framework/device/device_queues.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "framework/communicator/call_sequence.hpp"
#include "framework/device/issued_device_calls.hpp"

namespace anyccl {
namespace {

/// Takes the algorithm that is fastest where links to the host count, and not its caches; unless
/// the configuration of the communicator has rules of its own.
void prefer_few_steps(PlanningFacts& facts) {
  AlgorithmRules& rules = facts.policy.communicator.algorithms;
  for (int what = 0; what < anycclNumCollectives; ++what)
    if (rules.names(static_cast<Collective>(what))) return;
  if (facts.size == 2) rules = *AlgorithmRules::parse("all_reduce:one_shot");
}

PlanningFacts facts_of(const Membership& me) {
  PlanningFacts facts = me;
  prefer_few_steps(facts);
  facts.tile_bytes = Wires::kMostPublished;
  facts.ring_bytes = Wires::slots_bytes();
  return facts;
}

/// Whether the first rank with a result makes truth values of it apart, as it adds up nothing.
bool differs_by_rank(const Call& call) {
  const bool is_logical = call.dtype == DType::boolean || call.op == ReduceOp::land ||
                          call.op == ReduceOp::lor || call.op == ReduceOp::lxor;
  return is_logical &&
         (call.collective == Collective::scan || call.collective == Collective::exscan);
}

/// As all ranks see it.
bool may_be_in_queues(const Call& call) {
  return has_equal_blocks(call.collective) && call.collective != Collective::barrier &&
         call.count > 0 && call.settings == 0 && !Operators::is_created(call.op) &&
         !differs_by_rank(call);
}

}  // namespace

DeviceQueues::DeviceQueues(const std::shared_ptr<Comm>& comm,
                           const std::shared_ptr<DeviceCopies>& copies)
    : comm_(comm),
      copies_(copies),
      facts_(facts_of(comm->membership())),
      plans_(facts_, Wires::kSlots, no_transports_, Meetings(*comm_).routes()) {
  state_.numbers.resize(static_cast<std::size_t>(comm->size()));
}

/// The driver may wait for other queues of the device in this: the thread that ends their waits,
/// after a failure, leaves it instead.
DeviceQueues::~DeviceQueues() {
  if (copies_ == nullptr) return;
  if (is_inherited() || IssuedDeviceCalls::is_this_thread()) {
    static_cast<void>(wires_.release());  // with the memory, whose addresses stay pinned
    static_cast<void>(new std::shared_ptr<Comm>(comm_));
    return;
  }
  if (wires_ != nullptr && wires_->device_slots() != nullptr && !comm_->failure().ok())
    wires_->device_slots()->abandon();  // else peers have read all that calls have published
  wires_.reset();
  const auto scope = DeviceScope::enter(device());
  if (!scope.ok()) return;
  for (const DeviceQueue queue : {state_.out, state_.in})
    if (queue != nullptr) static_cast<void>(device().drop_queue(queue));
  std::vector<DeviceMoment> moments{state_.written, before_};
  for (const QueueState::Slot& slot : state_.slots) moments.push_back(slot.filled);
  for (const DeviceMoment moment : moments)
    if (moment != nullptr) static_cast<void>(device().drop_moment(moment));
  for (const auto& channel : channels_)
    if (channel != nullptr) channel->drop();
  room_of_out_.drop(device());
  room_of_in_.drop(device());
  moments_.drop_all(device());
  for (void* const memory : scratch_) static_cast<void>(device().release(memory));
}

/// Why this rank can have no queues.
Status DeviceQueues::problem() const {
  if (copies_ == nullptr)
    return error(Code::unsupported, "it has no device: anycclCommSetDevice gives it one");
  if (comm_->size() > static_cast<int>(Device::kMostSources))
    return error(Code::unsupported, "device queues are for at most {} ranks, and these are {}",
                 Device::kMostSources, comm_->size());
  if (comm_->membership().network)
    return error(Code::unsupported, "not all ranks are on one host, sharing memory");
  const DeviceAbilities& can = device().abilities();
  const char* const missing =
      !can.writes_words || !can.waits_for_words ? "queues that wait for words in memory"
      : !can.pins_read_only                     ? "a driver that pins memory read-only"
      : !can.reduces ? "kernels that reduce (a build with ANYCCL_WITH_CUDA_KERNELS)"
                     : nullptr;
  if (missing == nullptr) return {};
  return error(Code::unsupported, "device {} lacks {}", device().number(), missing);
}

Result<std::shared_ptr<DeviceQueues>> DeviceQueues::make(
    const std::shared_ptr<Comm>& comm, const std::shared_ptr<DeviceCopies>& copies,
    std::chrono::milliseconds limit) {
  const auto made = std::make_shared<DeviceQueues>(comm, copies);
  ANYCCL_TRY(const auto sequence, CallSequence::begin(*comm));
  Meetings meetings(*comm, limit);
  const Status problem = made->problem();
  std::vector<std::uint64_t> hardware(static_cast<std::size_t>(comm->size()));
  const std::uint64_t mine = problem.ok() ? made->device().abilities().hardware : 0;
  ANYCCL_CHECK(meetings.exchange(std::as_bytes(std::span(&mine, 1)),
                                 reinterpret_cast<std::byte*>(hardware.data())));
  const std::set<std::uint64_t> devices(hardware.begin(), hardware.end());
  std::unique_ptr<DeviceSlots> slots;
  if (!devices.contains(0) && devices.size() == 1) {
    ANYCCL_TRY(slots, DeviceSlots::make(meetings, copies->shared_device(), comm->rank(),
                                        comm->size(), Wires::slots_bytes()));
  }
  const std::size_t shown = Wires::shown_bytes(slots == nullptr, comm->size());
  const auto use = [&](const Meetings::AllShown& all) -> Status {
    ANYCCL_TRY(made->wires_,
               Wires::pin(copies->shared_device(), comm->rank(), all, std::move(slots)));
    return made->make_queues();
  };
  ANYCCL_CHECK(meetings.show(shown, Wires::words_bytes(comm->size()), problem, use));
  made->make_channels();
  // Kernels that wait for each other must run at once, which one device does not promise.
  if (!devices.contains(0) && devices.size() == hardware.size())
    made->exchanges_ = std::make_unique<Exchanges>(*made->wires_, comm->rank(), comm->size());
  return made;
}

Status DeviceQueues::make_queues() {
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(device()));
  ANYCCL_TRY(state_.out, device().make_queue(true));
  ANYCCL_TRY(state_.in, device().make_queue(true));
  ANYCCL_TRY(state_.written, device().make_moment());
  ANYCCL_TRY(before_, device().make_moment());
  for (QueueState::Slot& slot : state_.slots) {
    ANYCCL_TRY(slot.filled, device().make_moment());
  }
  ANYCCL_CHECK(room_of_out_.make(device()));
  return room_of_in_.make(device());
}

void DeviceQueues::make_channels() {
  const Rank me = comm_->rank();
  for (int r = 0; r < comm_->size(); ++r)
    for (const bool sends : {true, false})
      channels_.push_back(Rank{r} == me
                              ? nullptr
                              : std::make_unique<Channel>(device(), *wires_, me, Rank{r}, sends));
}

/// The two ends of a message must come to the same answer.
bool DeviceQueues::takes_message(const Call& call) const {
  return call.tag == 0 && call.settings == 0 && call.count > 0 && call.root != kAnySource &&
         call.root != comm_->rank();
}

std::shared_ptr<QueuedMessage> DeviceQueues::message(const Call& call, DeviceQueue program) {
  const std::size_t way = call.collective == Collective::send ? 0 : 1;
  return std::make_shared<QueuedMessage>(shared_from_this(),
                                         *channels_[2 * uindex(call.root) + way], call, program);
}

Result<std::shared_ptr<EnqueuedOperation>> DeviceQueues::result_of(
    std::shared_ptr<QueuedMessage> message) {
  const Status& problem = message->problem();
  if (problem.ok()) return std::shared_ptr<EnqueuedOperation>(std::move(message));
  return message->has_met() ? fail(problem, *message) : problem;
}

Result<bool> DeviceQueues::takes(const Call& call) {
  if (call.is_point_to_point()) return takes_message(call);
  ANYCCL_TRY(const auto prepared, plan(call));
  return prepared != nullptr;
}

Result<std::shared_ptr<const PreparedCall>> DeviceQueues::plan(const Call& call) {
  std::shared_ptr<const PreparedCall> none;
  if (comm_->membership().verify.each != 0 || !may_be_in_queues(call)) return none;
  const std::lock_guard lock(plans_mutex_);
  ANYCCL_CHECK(plans_.check(call));
  ANYCCL_TRY(auto prepared, plans_.find(call, CallKey(call, comm_->rank())));
  const bool is_average = call.op == ReduceOp::avg;
  const bool is_plain =
      prepared->input.is_empty() && prepared->result.convert == nullptr &&
      (is_average ? prepared->portions.stored_growth() == 1
                  : prepared->result.is_empty() && prepared->portions.kernel == nullptr);
  const std::size_t largest =  // of any rank
      prepared->routed->most_together * prepared->geometry.scratch_chunk();
  if (is_exchange(call, *prepared)) return prepared;
  return is_plain && largest <= Wires::kSlotBytes ? prepared : none;
}

/// Users who name algorithms get these.
bool DeviceQueues::is_exchange(const Call& call, const PreparedCall& prepared) const {
  const TunerPolicy& policy = comm_->membership().policy;
  return exchanges_ != nullptr && ExchangedCall::fits(prepared) &&
         !policy.environment.algorithms.names(call.collective) &&
         !policy.communicator.algorithms.names(call.collective);
}

/// Memory of the device that calls use one after the other. A block that was too small is kept:
/// giving it back may wait for all queues.
Result<std::byte*> DeviceQueues::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reserve(scratch_.size() + 1);
    ANYCCL_TRY(void* const memory, device().allocate(bytes));
    scratch_.push_back(memory);
    scratch_bytes_ = bytes;
  }
  return scratch_.empty() ? nullptr : static_cast<std::byte*>(scratch_.back());
}

Result<std::shared_ptr<EnqueuedOperation>> DeviceQueues::put(const Call& call, DeviceQueue program,
                                                             Follower follower,
                                                             const Deadline& until) {
  for (;;) {  // whoever waits for the turn must not hold up the thread that has it
    ANYCCL_CHECK(Meetings(*comm_).await_turn(call, until));
    auto put = put_in_turn(call, program, follower);
    if (put.status().code() != Code::in_progress) return put;
  }
}

/// Errors: besides, in_progress, if it is another thread's turn; nothing is done then.
Result<std::shared_ptr<EnqueuedOperation>> DeviceQueues::put_in_turn(const Call& call,
                                                                     DeviceQueue program,
                                                                     Follower follower) {
  const std::lock_guard lock(mutex_);
  ANYCCL_CHECK(comm_->failure());
  ANYCCL_TRY(const auto prepared, plan(call));
  if (prepared == nullptr) return error(Code::unsupported, "the call is not for device queues");
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(device()));
  ANYCCL_CHECK(check_recording(device(), program));
  const bool is_exchange = this->is_exchange(call, *prepared);
  ANYCCL_TRY(std::byte* const scratch,
             this->scratch(is_exchange ? blocks_bytes(*prepared) : prepared->scratch_bytes));
  const auto operation = std::make_shared<EnqueuedOperation>(shared_from_this());
  ANYCCL_CHECK(operation->make_moments(is_exchange ? std::optional(exchanges_->next_begin())
                                                   : std::nullopt));
  IssuedDeviceCalls::One one{operation};
  std::vector<WordOfRank> waits;
  if (is_exchange) waits = exchanges_->next_waits();
  ANYCCL_CHECK(IssuedDeviceCalls::of_process().start());
  ANYCCL_TRY(auto meeting, Meetings(*comm_).issue(call, *prepared, agreement_));
  ++calls_;
  meeting->begin_wait();  // streams wait, if nobody else does
  operation->begin_wait();
  operation->set_meeting(std::move(meeting));
  operation->keeps_limit(call.timeout);
  IssuedDeviceCalls::of_process().add(std::move(one));
  const bool directly = is_exchange && follower == Follower::program && program != nullptr;
  Status status = is_exchange ? put_exchange(exchanges_->next(call, *prepared, scratch), program,
                                             directly, *operation)
                              : put_commands(call, *prepared, scratch, program, *operation, waits);
  const Status ended = put_end(*operation, directly ? program : state_.in);
  if (status.ok()) status = ended;
  operation->set_enqueued(std::move(waits));
  last_calls_.add(operation, directly);
  if (follower != Follower::none && !directly && status.ok())
    ANYCCL_CHECK(operation->hold(follower == Follower::program ? program : state_.out));
  if (status.ok()) return operation;
  return fail(status, *operation);
}

/// Memory for the blocks of all ranks that an exchange reduces.
std::size_t DeviceQueues::blocks_bytes(const PreparedCall& prepared) const {
  const ExchangedCall exchanged(prepared, comm_->rank(), comm_->size());
  return exchanged.reduces ? exchanged.block * static_cast<std::size_t>(comm_->size()) : 0;
}

/// A kernel that waits for those of the other ranks, in the queue of the program itself, if the
/// caller says so: then there is nothing else to be put there. In a group the calls of the ranks
/// may have other orders, and one queue.
Status DeviceQueues::put_exchange(const DeviceExchange& exchange, DeviceQueue program,
                                  bool directly, EnqueuedOperation& operation) {
  constexpr std::uint32_t kCommands = 5;
  if (directly) {
    if (const auto other = last_calls_.one_too_many())
      ANYCCL_CHECK(await([&] { return device().is_past(other->end()); }, operation.on_host()));
    ANYCCL_CHECK(last_calls_.follow(device(), program, true));
    return device().exchange(program, exchange);
  }
  ANYCCL_CHECK(make_room(kCommands, operation.on_host()));
  ANYCCL_CHECK(device().record(program, before_));
  ANYCCL_CHECK(device().wait(state_.in, before_));
  ANYCCL_CHECK(last_calls_.follow(device(), state_.in, false));
  return device().exchange(state_.in, exchange);
}

/// The communicator fails; returns why. The caller, who gets no operation, may then free the memory
/// of the call: so this waits until queues are through with it, up to a second, as a stream that
/// does not come holds them up.
Status DeviceQueues::fail(const Status& why, const EnqueuedOperation& operation) {
  using namespace std::chrono_literals;
  const Status failure = comm_->failure().ok() ? fail_by_device(*comm_, why) : comm_->failure();
  for (const Deadline patience = Deadline::in(1s); !operation.done() && !patience.passed();)
    std::this_thread::sleep_for(200us);  // another thread ends the waits of the queues
  return failure;
}

Status DeviceQueues::put_commands(const Call& call, const PreparedCall& prepared,
                                  std::byte* scratch, DeviceQueue program,
                                  EnqueuedOperation& operation,
                                  std::vector<WordOfRank>& waits) try {
  Device& on = device();
  ANYCCL_CHECK(on.record(program, before_));
  ANYCCL_CHECK(on.wait(state_.out, before_));
  ANYCCL_CHECK(on.wait(state_.in, before_));
  ANYCCL_CHECK(last_calls_.follow(device(), state_.in, false));
  ANYCCL_CHECK(on.wait_word(state_.in, wires_->agreed(), calls_));
  ANYCCL_CHECK(on.record(state_.in, operation.turn()));
  const Enqueuer::Pause pause = [&](std::uint32_t commands) {
    return make_room(commands, operation.on_host());
  };
  Enqueuer enqueuer(on, *wires_, state_, prepared, comm_->rank(),
                    {call.input, call.output, scratch}, pause);
  const Status status = enqueuer.run();
  waits = enqueuer.last_waits();
  return status;
} catch (const std::bad_alloc&) {
  return error(Code::system_error, "no memory for a call in queues of a device");
}

/// What the operation ends with is in the queues, also after an error. `last`: that which has the
/// end of its work.
Status DeviceQueues::put_end(const EnqueuedOperation& operation, DeviceQueue last) {
  Status joined;
  if (operation.turn() != nullptr) {  // it is in both
    joined = device().record(state_.out, before_);
    if (joined.ok()) joined = device().wait(state_.in, before_);
  }
  const Status recorded = device().record(last, operation.end());
  return joined.ok() ? recorded : joined;
}

Status DeviceQueues::make_room(std::uint32_t commands, Operation& meeting) {
  ANYCCL_CHECK(await([&] { return room_of_out_.take(device(), state_.out, commands); }, meeting));
  return await([&] { return room_of_in_.take(device(), state_.in, commands); }, meeting);
}

/// `meeting`: of the call that wants room, which peers may leave without.
Status DeviceQueues::await(const std::function<Result<bool>()>& has_come,
                           Operation& meeting) const {
  using namespace std::chrono_literals;
  const Deadline patience = Deadline::in(1s);  // what a dead peer has done before may be enough
  for (;;) {
    ANYCCL_TRY(const bool is_there, has_come());
    if (is_there) return {};
    ANYCCL_CHECK(comm_->failure());
    if (patience.passed()) Meetings(*comm_).check_deaths();
    if (patience.passed() && !meeting.done()) Meetings(*comm_).check(meeting, false);
    std::this_thread::sleep_for(200us);  // nothing that a device does wakes this thread
  }
}

}  // namespace anyccl
