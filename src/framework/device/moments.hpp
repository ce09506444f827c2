#pragma once
// Moments of a device that calls use one after the other: making one takes a driver longer than
// recording it.

#include <mutex>
#include <vector>

#include "platform/device/device.hpp"

namespace anyccl {

/// Moments that nobody uses.
///
/// Threads: any, in a DeviceScope.
class Moments {
 public:
  Moments() { free_.reserve(kMost); }
  Result<DeviceMoment> take(Device& device) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        const DeviceMoment moment = free_.back();
        free_.pop_back();
        return moment;
      }
    }
    return device.make_moment();
  }
  /// No queue will be told to wait for it.
  void give_back(Device& device, DeviceMoment moment) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kMost)
      free_.push_back(moment);
    else
      static_cast<void>(device.drop_moment(moment));
  }
  /// No call is left that uses any.
  void drop_all(Device& device) {
    for (const DeviceMoment moment : free_) static_cast<void>(device.drop_moment(moment));
    free_.clear();
  }

 private:
  static constexpr std::size_t kMost = 64;
  std::mutex mutex_;
  std::vector<DeviceMoment> free_;
};

}  // namespace anyccl
