#pragma once
// Marks keep a queue from getting more commands than it has room for: a call waits in the library
// then, where failures are seen, instead of in the driver.

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "platform/device/device.hpp"

namespace anyccl {

/// The room of one queue, which only its owner puts commands into.
///
/// Threads: one at a time, in a DeviceScope.
class QueueRoom {
 public:
  Status make(Device& device) {
    for (DeviceMoment& mark : marks_) {
      ANYCCL_TRY(mark, device.make_moment());
    }
    return {};
  }
  /// Whether there is room for so many commands now; they count as put then.
  Result<bool> take(Device& device, DeviceQueue queue, std::uint32_t commands) {
    if (since_mark_ + commands >= kCommandsPerMark) {
      const DeviceMoment oldest = marks_[next_];
      ANYCCL_TRY(const bool is_past, device.is_past(oldest));
      if (!is_past) return false;
      ANYCCL_CHECK(device.record(queue, oldest));
      next_ = (next_ + 1) % marks_.size();
      since_mark_ = 0;
    }
    since_mark_ += commands;
    return true;
  }
  void drop(Device& device) {
    for (const DeviceMoment mark : marks_)
      if (mark != nullptr) static_cast<void>(device.drop_moment(mark));
  }

 private:
  /// A queue has room for 1024 commands on real devices; three marks are outstanding.
  static constexpr std::uint32_t kCommandsPerMark = 256;
  std::array<DeviceMoment, 3> marks_{};
  std::size_t next_ = 0;
  std::uint32_t since_mark_ = 0;  // commands
};

}  // namespace anyccl
