#include "framework/device/device_slots.hpp"

#include <algorithm>
#include <mutex>
#include <random>

#include "base/error.hpp"
#include "base/per_process.hpp"

namespace anyccl {
namespace {

/// Blocks that no communicator of this process uses. All have the same size.
struct FreeBlocks {
  struct Block {
    std::shared_ptr<Device> device;
    void* at;
  };
  std::mutex mutex;
  std::vector<Block> all;
};

/// Tells this process from others, also from those in other containers.
struct ProcessNumber {
  std::uint64_t value = std::random_device()() | std::uint64_t{std::random_device()()} << 32;
};

void* take_free(const Device& device) {
  auto& blocks = per_process<FreeBlocks>();
  const std::lock_guard lock(blocks.mutex);
  const auto found =
      std::find_if(blocks.all.begin(), blocks.all.end(),
                   [&](const FreeBlocks::Block& block) { return block.device.get() == &device; });
  if (found == blocks.all.end()) return nullptr;
  void* const at = found->at;
  blocks.all.erase(found);
  return at;
}

}  // namespace

Result<std::unique_ptr<DeviceSlots>> DeviceSlots::make(Meetings& meetings,
                                                       std::shared_ptr<Device> device, Rank me,
                                                       int ranks, std::size_t bytes) {
  std::unique_ptr<DeviceSlots> slots(new DeviceSlots(std::move(device)));
  std::vector<Card> all(static_cast<std::size_t>(ranks));
  const auto tell = [&](const Card& card) {
    return meetings.exchange(std::as_bytes(std::span(&card, 1)),
                             reinterpret_cast<std::byte*>(all.data()));
  };
  const auto all_can = [&] {
    return std::all_of(all.begin(), all.end(), [](const Card& card) { return card.can != 0; });
  };
  Card card;
  if (!slots->take(bytes, card).ok()) card.can = 0;
  ANYCCL_CHECK(tell(card));
  if (!all_can()) return std::unique_ptr<DeviceSlots>();
  if (!slots->open(all, me).ok()) card.can = 0;
  ANYCCL_CHECK(tell(card));
  if (!all_can()) return std::unique_ptr<DeviceSlots>();
  return slots;
}

Status DeviceSlots::take(std::size_t bytes, Card& card) {
  if (!device_->abilities().shares_memory)
    return error(Code::unsupported, "device {} shares no memory", device_->number());
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(*device_));
  mine_ = take_free(*device_);
  if (mine_ == nullptr) {
    ANYCCL_TRY(mine_, device_->allocate(bytes));
  }
  card.process = per_process<ProcessNumber>().value;
  card.block = mine_;
  ANYCCL_TRY(card.handle, device_->share(mine_));
  return {};
}

Status DeviceSlots::open(const std::vector<Card>& all, Rank me) {
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(*device_));
  for (const Card& card : all) {
    if (card.process == all[uindex(me)].process) {
      blocks_.push_back(card.block);
      continue;
    }
    ANYCCL_TRY(void* const block, device_->open_shared(card.handle));
    blocks_.push_back(block);
    opened_.push_back(block);
  }
  return {};
}

DeviceSlots::~DeviceSlots() {
  const auto scope = DeviceScope::enter(*device_);
  for (void* const block : opened_)
    if (scope.ok()) static_cast<void>(device_->close_shared(block));
  if (mine_ == nullptr) return;
  auto& blocks = per_process<FreeBlocks>();
  const std::lock_guard lock(blocks.mutex);
  blocks.all.push_back({device_, mine_});
}

}  // namespace anyccl
