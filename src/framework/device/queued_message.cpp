#include "framework/device/queued_message.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "framework/device/device_queues.hpp"

namespace anyccl {

QueuedMessage::QueuedMessage(std::shared_ptr<DeviceQueues> queues, Channel& channel,
                             const Call& call, DeviceQueue program)
    : EnqueuedOperation(std::move(queues)),
      channel_(channel),
      call_(call),
      program_(program),
      at_(sends() ? const_cast<std::byte*>(call.input) : call.output),
      bytes_(call.count * bytes_of(call.dtype)),
      part_(Channel::part_bytes(bytes_)) {}

IssuedDeviceCalls::One QueuedMessage::begin(const All& messages) {
  IssuedDeviceCalls::One begun(messages.begin(), messages.end());
  auto node = begun.begin();
  for (const auto& message : messages) {
    message->begin();
    node = message->has_met_ ? std::next(node) : begun.erase(node);
  }
  return begun;
}

/// Streams of a device may share one queue of the hardware, in the order in which work was put
/// there. So what is put there waits only for what the peer has put before what waits for this: a
/// send is as many parts ahead of the receive of that part as there are slots, less one.
void QueuedMessage::put_together(const All& messages, IssuedDeviceCalls::One begun) {
  Turn turn = put_turn(messages, true, kFirstSent);
  if (turn.has_room) turn = put_turn(messages, false, kFirstReceived);
  for (bool goes_on = turn.has_room; goes_on;) {
    turn = put_turn(messages, true, 1);
    if (!turn.has_room) break;  // or receives would get ahead
    const Turn received = put_turn(messages, false, 1);
    goes_on = received.has_room && (turn.parts > 0 || received.parts > 0);
  }
  IssuedDeviceCalls::of_process().add(std::move(begun));
}

void QueuedMessage::put_rest() {
  using namespace std::chrono_literals;
  while (has_met_ && problem_.ok() && !is_enqueued())
    if (put_here(kAllParts).parts == 0) std::this_thread::sleep_for(50us);
}

void QueuedMessage::put_first_parts(const All& messages, IssuedDeviceCalls::One begun) {
  static_cast<void>(put_turn(messages, true, kFirstSent));
  static_cast<void>(put_turn(messages, false, kFirstReceived));
  IssuedDeviceCalls::of_process().add(std::move(begun));
}

/// Puts so many parts into each channel of one direction.
QueuedMessage::Turn QueuedMessage::put_turn(const All& messages, bool sends, std::uint32_t each) {
  std::map<const Channel*, std::uint32_t> left;
  Turn all;
  for (const auto& message : messages) {
    if (message->sends() != sends) continue;
    std::uint32_t& most = left.try_emplace(&message->channel_, each).first->second;
    const Turn turn = message->put_here(most);
    most -= turn.parts;
    all.parts += turn.parts;
    all.has_room = all.has_room && turn.has_room;
  }
  return all;
}

void QueuedMessage::begin() {
  const auto scope = DeviceScope::enter(queues().device());
  problem_ = scope.ok() ? take_place() : scope.status();
}

/// After it, no error takes back what the other end will meet.
Status QueuedMessage::take_place() {
  Status status = queues().comm().failure();
  if (status.ok()) status = IssuedDeviceCalls::of_process().start();
  if (status.ok()) status = make_moments(std::nullopt);
  const std::lock_guard lock(channel_.mutex());
  if (status.ok()) status = channel_.note_place(program_, turn());
  if (!status.ok()) return status;
  ANYCCL_TRY(auto meeting, Meetings(queues().comm()).issue(call_, channel_.around()));
  meeting->begin_wait();  // streams wait, if nobody else does
  begin_wait();
  set_meeting(std::move(meeting));
  keeps_limit(call_.timeout);
  place_ = channel_.take_place();
  has_met_ = true;
  return {};
}

/// Puts parts there for the caller.
QueuedMessage::Turn QueuedMessage::put_here(std::uint32_t most) {
  if (!has_met_ || !problem_.ok() || is_enqueued()) return {};
  const auto turn = put(most, false);
  if (turn.ok()) return *turn;
  problem_ = turn.status();
  return {};
}

/// Errors: of the device; then there will be no more.
Result<QueuedMessage::Turn> QueuedMessage::put(std::uint32_t most, bool only_ready) {
  const auto scope = DeviceScope::enter(queues().device());
  const std::lock_guard lock(channel_.mutex());
  Turn turn;
  if (!channel_.is_turn_of(place_)) return turn;
  Status status = scope.status();
  while (status.ok() && put_ < bytes_ && queues().comm().failure().ok()) {
    if (turn.parts == most || (only_ready && !channel_.is_ready())) return turn;
    const auto room = channel_.take_room(put_ == 0);
    turn.has_room = !room.ok() || *room;
    if (!turn.has_room) return turn;
    status = room.ok() ? put_part() : room.status();
    ++turn.parts;
  }
  const Status recorded =
      scope.ok() ? queues().device().record(channel_.queue(), end()) : scope.status();
  set_enqueued({channel_.last_wait()});
  channel_.end_turn();
  if (status.ok()) status = recorded;
  if (!status.ok()) return status;
  return turn;
}

Status QueuedMessage::put_part() {
  if (put_ == 0) {
    Status begun = channel_.begin_message(turn());
    if (!begun.ok()) return begun;
    has_begun_.store(true, std::memory_order_release);
  }
  const std::size_t bytes = std::min(part_, bytes_ - put_);
  std::byte* const at = at_ + put_;
  put_ += bytes;
  return channel_.put_part(at, bytes);
}

std::shared_ptr<Comm> QueuedMessage::shared_comm() const {
  return queues().comm().shared_from_this();
}

bool QueuedMessage::put_more() {
  const auto turn = put(Wires::kMessageSlots, true);
  if (turn.ok()) return turn->parts > 0 || is_enqueued();
  static_cast<void>(fail_by_device(queues().comm(), turn.status()));
  return true;
}

std::string QueuedMessage::what() const {
  return sends() ? "a send in queues of its device" : "a receive in queues of its device";
}

/// Parts of it are not put there while the peer does not come.
void QueuedMessage::awaited(std::vector<Rank>& ranks) const {
  if (is_enqueued() || !on_host().done()) return EnqueuedOperation::awaited(ranks);
  ranks.push_back(call_.root);
}

Status QueuedMessage::hold(DeviceQueue queue) {
  using namespace std::chrono_literals;
  while (!is_enqueued()) std::this_thread::sleep_for(50us);  // another thread goes on with it
  return EnqueuedOperation::hold(queue);
}

}  // namespace anyccl
