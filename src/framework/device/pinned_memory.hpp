#pragma once
// Memory of the host that a device may copy from and to is kept here between calls.

#include <memory>
#include <mutex>
#include <vector>

#include "platform/device/device.hpp"

namespace anyccl {

/// Blocks of pinned memory. Pinning takes longer than many a copy, so blocks are used again, and up
/// to 64 MiB of them are kept while no call has them.
///
/// Threads: any, in a DeviceScope. The device is borrowed.
class PinnedMemory {
 public:
  /// A block, and where the queue has last used it: `last_use` must be past before the block is.
  struct Block {
    std::byte* at;
    std::size_t bytes;
    DeviceMoment last_use;
    bool is_taken = false;
  };

  explicit PinnedMemory(Device& device) : device_(device) {}
  /// What queues still use stays behind, pinned.
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  /// A block of at least so many bytes that no queue uses.
  Result<Block*> take(std::size_t bytes);
  void give_back(Block* block);

 private:
  Result<Block*> add(std::size_t bytes);
  bool is_free(const Block& block) const;
  void remove(const Block& block);

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace anyccl
