#include "framework/device/pinned_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <map>

#include "base/error.hpp"
#include "base/per_process.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kLeastBlock = std::size_t{64} << 10;

/// Pages that a forked child does not get: the device would write to its parent's.
Result<std::byte*> map_pages(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    return system_error(errno, "memory for copies of {} bytes from and to a device", bytes);
  madvise(at, bytes, MADV_DONTFORK);
  return static_cast<std::byte*>(at);
}

/// Each has its device, so that no other one gets its address.
struct AllDevices {
  std::mutex mutex;
  std::map<const Device*, std::unique_ptr<PinnedMemory>> by_device;
};

}  // namespace

PinnedMemory& PinnedMemory::of(const std::shared_ptr<Device>& device) {
  auto& all = per_process<AllDevices>();
  const std::lock_guard lock(all.mutex);
  auto& memory = all.by_device[device.get()];
  if (memory == nullptr) memory = std::make_unique<PinnedMemory>(device);
  return *memory;
}

bool PinnedMemory::is_free(const Block& block) const {
  if (block.is_taken) return false;
  const auto past = device_->is_past(block.last_use);
  return past.ok() && *past;
}

Result<PinnedMemory::Block*> PinnedMemory::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Block* smallest = nullptr;
  for (const auto& block : blocks_)
    if (block->bytes >= bytes && (smallest == nullptr || block->bytes < smallest->bytes) &&
        is_free(*block))
      smallest = block.get();
  if (smallest == nullptr) {
    ANYCCL_TRY(smallest, add(bytes));
  }
  smallest->is_taken = true;
  return smallest;
}

Result<PinnedMemory::Block*> PinnedMemory::add(std::size_t bytes) {
  auto block = std::make_unique<Block>();
  blocks_.reserve(blocks_.size() + 1);
  block->bytes = std::bit_ceil(std::max(bytes, kLeastBlock));
  ANYCCL_TRY(block->at, map_pages(block->bytes));
  if (Status ready = make_ready(*block); !ready.ok()) {
    munmap(block->at, block->bytes);
    return ready;
  }
  blocks_.push_back(std::move(block));
  return blocks_.back().get();
}

/// Gives a block of memory what it needs of the device; or nothing, after an error.
Status PinnedMemory::make_ready(Block& block) const {
  ANYCCL_TRY(block.last_use, device_->make_moment());
  auto queue = device_->make_queue(true);
  Status pinned = queue.ok() ? device_->pin(block.at, block.bytes, false) : queue.status();
  if (pinned.ok()) return block.queue = *queue, Status();
  if (queue.ok()) static_cast<void>(device_->drop_queue(*queue));
  static_cast<void>(device_->drop_moment(block.last_use));
  return pinned;
}

void PinnedMemory::give_back(Block* block) {
  const std::lock_guard lock(mutex_);
  block->is_taken = false;
}

}  // namespace anyccl
