#include "c/device/new_device.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "c/background.hpp"
#include "framework/device/device_queues.hpp"

namespace anyccl {

NewDevice::NewDevice(const std::shared_ptr<Device>& device, std::chrono::milliseconds limit)
    : copies_(device == nullptr ? nullptr : std::make_shared<DeviceCopies>(device)),
      limit_(limit) {}

/// Without a failure all ranks hear the same: what one of them lacks, or cannot do.
Status NewDevice::use_queues(const CommPtr& comm) {
  if (!comm->membership().device_queues || comm->size() == 1) return {};
  {
    const std::lock_guard lock(mutex_);
    if (is_abandoned_) abort(*comm);
    in_use_queues_ = comm;
  }
  auto queues = DeviceQueues::make(comm, copies_, limit_);
  {
    const std::lock_guard lock(mutex_);
    in_use_queues_ = nullptr;
  }
  if (queues.ok()) return queues_ = *std::move(queues), Status();
  if (!comm->failure().ok()) return queues.status();
  log(copies_ == nullptr ? LogLevel::info : LogLevel::warn,
      "{}: calls on memory of devices go by copies to the host, not in queues of the devices: {}",
      comm->membership().label, queues.status().message());
  return {};
}

std::function<Result<CommPtr>()> NewDevice::with_queues(std::function<Result<CommPtr>()> make,
                                                        std::shared_ptr<NewDevice> device) {
  return [make = std::move(make), device = std::move(device)]() -> Result<CommPtr> {
    auto made = make();
    if (made.ok() && *made != nullptr) ANYCCL_CHECK(device->use_queues(*made));
    return made;
  };
}

void NewDevice::abandon() {
  const std::lock_guard lock(mutex_);
  is_abandoned_ = true;
  if (in_use_queues_ != nullptr) abort(*in_use_queues_);
}

}  // namespace anyccl
