#pragma once
// Memory of the host that a device may copy from and to is kept here between calls.

#include <memory>
#include <mutex>
#include <vector>

#include "platform/device/device.hpp"

namespace anyccl {

/// Blocks of pinned memory, which all communicators of a device share. They and their queues are
/// kept until the process ends: unpinning waits for all work on the device, also for work that
/// waits for what the caller does next. So there is never more than twice what calls have needed at
/// once.
///
/// Threads: any, in a DeviceScope.
class PinnedMemory {
 public:
  /// A block, the queue that copies from and to it, and where that has last used it: the block is
  /// free when that is past. So copies of several calls overlap.
  struct Block {
    std::byte* at;
    std::size_t bytes;
    DeviceQueue queue = nullptr;
    DeviceMoment last_use = nullptr;
    bool is_taken = false;
  };

  static PinnedMemory& of(const std::shared_ptr<Device>& device);
  explicit PinnedMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  /// A block of at least so many bytes that no queue uses.
  Result<Block*> take(std::size_t bytes);
  void give_back(Block* block);

 private:
  Result<Block*> add(std::size_t bytes);
  Status make_ready(Block& block) const;
  bool is_free(const Block& block) const;

  const std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace anyccl
