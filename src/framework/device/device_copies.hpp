#pragma once
// The device of a communicator, with what copies from and to its memory need.

#include <memory>
#include <mutex>

#include "base/fork.hpp"
#include "framework/device/pinned_memory.hpp"
#include "platform/device/device.hpp"

namespace anyccl {

/// One communicator's: the device, and a queue that copies.
///
/// Threads: any.
class DeviceCopies {
 public:
  explicit DeviceCopies(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  /// In a forked child nothing is given back: the device is the parent's.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  bool is_inherited() const { return generation_ != fork_generation(); }
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  PinnedMemory& memory() const { return PinnedMemory::of(device_); }
  /// The queue that copies, made when it is first asked for. In a DeviceScope.
  Result<DeviceQueue> queue();

 private:
  const std::shared_ptr<Device> device_;
  std::mutex mutex_;
  DeviceQueue queue_ = nullptr;
  const std::uint64_t generation_ = (watch_forks(), fork_generation());
};

}  // namespace anyccl
