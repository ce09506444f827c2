#pragma once
// The device of a communicator that is being made.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "framework/device/device_copies.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {

class DeviceQueues;

/// The thread that makes the communicator fills it, and hands it over with that.
class NewDevice {
 public:
  /// `device`: null if it has none. `limit`: the time that its queues may take; 0: that of the
  /// communicator's operations.
  explicit NewDevice(const std::shared_ptr<Device>& device, std::chrono::milliseconds limit = {});

  const std::shared_ptr<DeviceCopies>& copies() const { return copies_; }
  const std::shared_ptr<DeviceQueues>& queues() const { return queues_; }
  /// Collective over `comm`: gives it queues of devices, if its ranks ask for them when it is made
  /// and all can have them; warns if this one can, and others cannot. Errors: the communicator has
  /// failed.
  Status use_queues(const CommPtr& comm);
  /// As `make`, and then use_queues() of what it makes, unless that is null.
  static std::function<Result<CommPtr>()> with_queues(std::function<Result<CommPtr>()> make,
                                                      std::shared_ptr<NewDevice> device);
  /// Nobody wants the communicator any more: use_queues() ends soon.
  void abandon();

 private:
  const std::shared_ptr<DeviceCopies> copies_;
  const std::chrono::milliseconds limit_;
  std::shared_ptr<DeviceQueues> queues_;
  std::mutex mutex_;
  CommPtr in_use_queues_;
  bool is_abandoned_ = false;
};

}  // namespace anyccl
