#include "framework/device/channel.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "framework/device/device_call.hpp"

namespace anyccl {

Status Channel::note_place(DeviceQueue program, DeviceMoment moment) {
  ANYCCL_CHECK(check_recording(device_, program));
  if (queue_ == nullptr) ANYCCL_CHECK(make_queue());  // with the first message
  return device_.record(program, moment);
}

Status Channel::make_queue() {
  ANYCCL_CHECK(room_.make(device_));
  ANYCCL_TRY(queue_, device_.make_queue(true));
  return {};
}

void Channel::drop() {
  if (queue_ != nullptr) static_cast<void>(device_.drop_queue(queue_));
  room_.drop(device_);
}

/// The two copies of a message overlap if it has several parts; small ones take longer to begin
/// than to copy.
std::size_t Channel::part_bytes(std::size_t message) {
  constexpr std::size_t kLeast = std::size_t{256} << 10, kWhole = 4096;
  const std::size_t quarter = message / Wires::kMessageSlots / kWhole * kWhole;
  return std::clamp(quarter, kLeast, Wires::kMessageSlotBytes);
}

/// For a slot that its reader is through with, or for the data in one.
WordOfRank Channel::next_wait() const {
  if (sends_) return {peer_, wires_.received(me_, peer_), parts_ + 1 - Wires::kMessageSlots};
  return {peer_, wires_.sent(me_, peer_), parts_ + 1};
}

bool Channel::is_ready() const {
  return next_wait().is_there();
}

Status Channel::begin_message(DeviceMoment moment) {
  ++messages_;
  ANYCCL_CHECK(device_.wait(queue_, moment));
  if (!sends_) ANYCCL_CHECK(device_.wait_word(queue_, wires_.met(peer_), messages_));
  return device_.record(queue_, moment);
}

Status Channel::put_part(std::byte* at, std::size_t bytes) {
  last_wait_ = next_wait();
  ANYCCL_CHECK(device_.wait_word(queue_, last_wait_.word, last_wait_.at_least));
  const std::uint32_t part = parts_++;
  if (sends_) {
    ANYCCL_CHECK(device_.copy(queue_, wires_.message_slot(me_, peer_, part), at, bytes));
    return device_.write_word(queue_, wires_.sent(peer_, me_), part + 1);
  }
  ANYCCL_CHECK(device_.copy(queue_, at, wires_.message_slot(peer_, me_, part), bytes));
  return device_.write_word(queue_, wires_.received(peer_, me_), part + 1);
}

}  // namespace anyccl
