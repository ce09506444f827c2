#pragma once
// Slots of ranks that share one device, in its memory: their data does not go through the host.

#include <cstddef>
#include <memory>
#include <vector>

#include "framework/communicator/meetings.hpp"
#include "platform/device/device.hpp"

namespace anyccl {

/// A block of memory of the device for each rank, which all ranks read: those of other processes by
/// handles.
///
/// A block may still be open in another process when its rank is through with it, and freeing it
/// then is undefined. So blocks are kept for later communicators of this process, or for ever.
class DeviceSlots {
 public:
  /// Collective, of ranks that are on one device. Returns null, on all of them, unless they can
  /// open each other's blocks. Errors: the communicator has failed.
  static Result<std::unique_ptr<DeviceSlots>> make(Meetings& meetings,
                                                   std::shared_ptr<Device> device, Rank me,
                                                   int ranks, std::size_t bytes);
  /// After all queues are through with them.
  ~DeviceSlots();
  DeviceSlots(const DeviceSlots&) = delete;
  DeviceSlots& operator=(const DeviceSlots&) = delete;

  /// A peer may still read this rank's block: nobody is ever to use it again.
  void abandon() { mine_ = nullptr; }
  /// The block of a rank.
  std::byte* of(std::size_t rank) const { return static_cast<std::byte*>(blocks_[rank]); }

 private:
  /// What a rank tells the others.
  struct Card {
    std::uint64_t can = 1;  // 0: it cannot
    std::uint64_t process = 0;
    void* block = nullptr;  // as this process has it
    SharedHandle handle{};
  };
  explicit DeviceSlots(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Status take(std::size_t bytes, Card& card);
  Status open(const std::vector<Card>& all, Rank me);

  const std::shared_ptr<Device> device_;
  void* mine_ = nullptr;
  std::vector<void*> blocks_;  // by rank
  std::vector<void*> opened_;  // those of other processes
};

}  // namespace anyccl
