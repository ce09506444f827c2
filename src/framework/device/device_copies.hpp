#pragma once
// The device of a communicator, with what copies from and to its memory need.

#include <memory>

#include "base/fork.hpp"
#include "framework/device/pinned_memory.hpp"
#include "platform/device/device.hpp"

namespace anyccl {

/// One communicator's device.
///
/// Threads: any.
class DeviceCopies {
 public:
  explicit DeviceCopies(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  /// Whether it belongs to the parent of this process.
  bool is_inherited() const { return generation_ != fork_generation(); }
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  PinnedMemory& memory() const { return PinnedMemory::of(device_); }

 private:
  const std::shared_ptr<Device> device_;
  const std::uint64_t generation_ = (watch_forks(), fork_generation());
};

}  // namespace anyccl
