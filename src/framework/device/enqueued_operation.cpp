#include "framework/device/enqueued_operation.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "framework/device/device_queues.hpp"

namespace anyccl {

EnqueuedOperation::EnqueuedOperation(std::shared_ptr<DeviceQueues> queues)
    : queues_(std::move(queues)) {}

EnqueuedOperation::~EnqueuedOperation() {
  if (queues_->is_inherited()) return;
  const auto scope = DeviceScope::enter(queues_->device());
  if (!scope.ok()) return;
  for (const DeviceMoment moment : {turn_, end_})
    if (moment != nullptr) queues_->moments().give_back(queues_->device(), moment);
}

Status EnqueuedOperation::make_moments(const std::optional<WordOfRank>& begin) {
  begin_ = begin;
  if (!begin) {
    ANYCCL_TRY(turn_, queues_->moments().take(queues_->device()));
  }
  ANYCCL_TRY(end_, queues_->moments().take(queues_->device()));
  return {};
}

const Comm& EnqueuedOperation::comm() const {
  return queues_->comm();
}

bool EnqueuedOperation::keeps_limit(std::chrono::milliseconds time) {
  limit(time);
  return meeting_->done();
}

void EnqueuedOperation::awaited(std::vector<Rank>& ranks) const {
  if (!meeting_->done()) return meeting_->awaited(ranks);
  if (!is_enqueued()) return;
  for (const WordOfRank& wait : waits_)
    if (const Rank rank{static_cast<int>(wait.rank)};
        !wait.is_there() && std::find(ranks.begin(), ranks.end(), rank) == ranks.end())
      ranks.push_back(rank);
}

const Device& EnqueuedOperation::device() const {
  return queues_->device();
}

Status EnqueuedOperation::hold(DeviceQueue queue) {
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(queues_->device()));
  return queues_->device().wait(queue, end_);
}

bool EnqueuedOperation::advance() {
  if (done()) return false;
  Comm& comm = queues_->comm();
  if (!meeting_->done()) static_cast<void>(comm.test(*meeting_));
  Status failure = comm.failure();
  if (failure.ok() && meeting_->done() && !meeting_->status().ok()) failure = meeting_->status();
  if (!failure.ok()) queues_->wires().release();
  if (!is_enqueued()) {
    const bool moved = put_more();
    if (failure.ok() && !moved) look();
    return moved;
  }
  // A kernel may be through before all ranks have met here, and they are to know of that.
  if (failure.ok() && !meeting_->done()) return false;
  const auto scope = DeviceScope::enter(queues_->device());
  const Result<bool> is_through =
      scope.ok() ? queues_->device().is_past(end_) : Result<bool>(scope.status());
  if (!is_through.ok() && failure.ok()) {  // then the queues are ended, if they can be
    static_cast<void>(fail_by_device(comm, is_through.status()));
    return true;
  }
  if (is_through.ok() && !*is_through) {
    if (failure.ok()) look();
    return false;
  }
  complete(std::move(failure));
  comm.loop().wake();
  comm.loop().ring();
  return true;
}

/// For failures that nobody else would see, as no thread waits in the communicator. They are those
/// of the communicator.
void EnqueuedOperation::look() {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < 1ms || !meeting_->done()) return;
  looked_ = now;
  const auto scope = DeviceScope::enter(queues_->device());
  if (!scope.ok()) return;
  const auto has_turn = this->has_turn();
  if (!has_turn.ok() || !*has_turn) return queues_->comm().check_peers();
  Meetings(queues_->comm()).check(*this, !std::exchange(limit_counts_, true));
}

/// A moment that is not recorded yet says nothing.
Result<bool> EnqueuedOperation::has_turn() const {
  if (begin_) return begin_->is_there();
  if (!has_place()) return false;
  return queues_->device().is_past(turn_);
}

}  // namespace anyccl
