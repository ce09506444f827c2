#include "framework/queue/collective_queue.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kMostSpareFused = 4;  // they keep their memory

/// Whether nobody else has it any more, and all that others did with it has happened before this
/// returns. use_count() alone orders nothing; giving up an owner does, after those before.
template <typename T>
bool is_sole_owner(const std::shared_ptr<T>& owner) {
  if (owner.use_count() > 1) return false;
  std::shared_ptr<T>(owner).reset();
  return true;
}

std::shared_ptr<Operation> operation_of(const std::shared_ptr<QueuedCollective>& queued) {
  return {queued, &queued->execution};
}

}  // namespace

CollectiveQueue::CollectiveQueue(const Membership& me, const Routes& routes, CommRecords& records,
                                 Diagnosis& diagnosis)
    : me_(me),
      routes_(routes),
      records_(records),
      diagnosis_(diagnosis),
      plans_(me, slots_for(me.size), routes.publications, routes.publications_to),
      alone_(make({})) {}

std::byte* CollectiveQueue::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes + 64) scratch_.resize(bytes + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch_.data());
  return scratch_.data() + ((address + 63) / 64 * 64 - address);
}

std::shared_ptr<Operation> CollectiveQueue::queue_alone() {
  const std::shared_ptr<QueuedCollective> mine = std::exchange(alone_, make({}));
  mine->prepared = plans_.last();
  mine->scratch = std::move(scratch_);  // and stays where it is
  mine->started = true;
  collectives_.push_back(mine);
  return operation_of(mine);
}

/// Gives it the next place, and records it as of the stream of `gate`, which the caller has set.
/// Its plan is known.
void CollectiveQueue::push(const std::shared_ptr<QueuedCollective>& queued, Gate gate) {
  queued->scratch.resize(queued->prepared->scratch_bytes);
  queued->position = next_position(*queued->prepared);
  records_.add(queued->execution, *queued->prepared, sequence_, RecordState::issued, 0,
               gate.stream);
  collectives_.push_back(queued);
}

Result<std::shared_ptr<Operation>> CollectiveQueue::add(const Call& call, const CallKey& key,
                                                        Gate gate,
                                                        std::unique_ptr<FusedCall> fused) {
  if (is_verified_next(call)) return add_verified(call, key, gate);
  const auto queued = make(call);
  queued->execution.set(gate);
  queued->execution.limit(call.timeout);
  ANYCCL_TRY(queued->prepared, plans_.find(queued->kept.call(), key,
                                           fused == nullptr ? FusedParts{} : fused->parts()));
  queued->fused = std::move(fused);
  push(queued, gate);
  return operation_of(queued);
}

Result<std::shared_ptr<Operation>> CollectiveQueue::add_fused(std::span<const Call* const> calls,
                                                              Gate gate) {
  auto fused = std::make_unique<FusedCall>();
  if (!spare_fused_.empty()) {
    fused = std::move(spare_fused_.back());
    spare_fused_.pop_back();
  }
  fused->begin(calls, me_, shortest_limit(calls, me_.wait_limits.most));
  const Call& call = fused->call();  // stays where it is
  const CallKey key(call, me_.rank, fused->parts());
  return add(call, key, gate, std::move(fused));
}

Result<std::shared_ptr<Operation>> CollectiveQueue::add_meeting(const Call& call,
                                                                const PreparedCall& data,
                                                                std::uint64_t way,
                                                                AroundCall& around) {
  const auto queued = make(call);
  queued->meeting = &around;
  queued->execution.set(Gate::open);
  queued->execution.limit(call.timeout);
  ANYCCL_TRY(queued->prepared, plans_.plan_meeting(data, way));
  push(queued, Gate::open);
  return operation_of(queued);
}

Result<std::shared_ptr<Operation>> CollectiveQueue::add_again(
    std::shared_ptr<QueuedCollective>& again, const Call& call, const CallKey& key,
    const std::shared_ptr<const PreparedCall>& plan, Gate gate) {
  if (is_verified_next(call)) return add_verified(call, key, gate);
  if (again == nullptr || !is_sole_owner(again)) again = make(call);
  again->started = false;
  again->prepared = plan;
  again->execution.again();
  again->execution.set(gate);
  again->execution.limit(call.timeout);
  push(again, gate);
  plans_.use(call, key, plan);
  return operation_of(again);
}

void CollectiveQueue::start(QueuedCollective& head) {
  AroundCall* const around = head.around();
  if (around != nullptr) around->before();
  head.execution.start(*head.prepared, head.kept.call(), head.position, head.scratch.data());
  head.execution.end_with(around);
  head.execution.limit(head.execution.time_limit());  // counts from here
  records_.recorder().start(head.execution.record_number());
  head.started = true;
}

Status CollectiveQueue::advance(bool& moved) {
  while (!collectives_.empty()) {
    const std::shared_ptr<QueuedCollective> head = collectives_.front();
    if (!head->execution.is_open()) break;
    if (!head->started) {
      if (head->prepared->only_gives) ANYCCL_CHECK(glance());
      start(*head);
    }
    // A diagnosis may have finished it, and then its buffers belong to the caller again.
    if (!head->execution.done()) moved = head->execution.advance() || moved;
    ANYCCL_CHECK(head->execution.problem());
    if (!head->execution.done()) break;
    if (head->fused != nullptr && spare_fused_.size() < kMostSpareFused)
      spare_fused_.push_back(std::move(head->fused));
    collectives_.pop_front();
  }
  return {};
}

Status CollectiveQueue::glance() {
  constexpr std::uint64_t kTicks = 100'000;  // for each rank: 30 to 100 us
  const std::uint64_t now = records_.recorder().clock().ticks();
  if (now - glanced_ < kTicks * static_cast<std::uint64_t>(me_.size - 1)) return {};
  glanced_ = now;
  return diagnosis_.glance(sequence_);
}

void CollectiveQueue::limit(Operation& operation, std::chrono::milliseconds time) {
  operation.limit(time);
  for (const auto& queued : collectives_)
    if (queued->check != nullptr && &queued->check->execution == &operation)
      queued->execution.limit(time);
}

/// Collectives that are not complete are queued, or one runs alone.
std::uint64_t CollectiveQueue::count_completed() const {
  const auto open = static_cast<std::uint64_t>(
      std::count_if(collectives_.begin(), collectives_.end(), [](const auto& queued) {
        return queued->check == nullptr && !queued->execution.done() && !queued->is_extra;
      }));
  return sequence_ - checks_ - open - (running_alone() != nullptr ? 1 : 0);
}

void CollectiveQueue::end(const Status& why) {
  if (running_alone() != nullptr) alone_->execution.complete(why);
  for (const auto& queued : collectives_)
    if (!queued->execution.done()) queued->execution.complete(why);
  collectives_.clear();
}

std::size_t CollectiveQueue::memory_bytes() const {
  std::size_t sum = scratch_.capacity();
  for (const auto& queued : collectives_) sum += queued->scratch.capacity();
  return sum;
}

}  // namespace anyccl
