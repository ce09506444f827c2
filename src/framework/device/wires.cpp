#include "framework/device/wires.hpp"

#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "base/round_up.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kPage = 4096;

/// How many wires use the same pinned memory: ranks may be threads of one process.
struct PinCounts {
  std::mutex mutex;
  std::map<const std::byte*, int> of;
};

}  // namespace

std::size_t Wires::lines_bytes() {
  return round_up(2 * DeviceExchange::kLines * sizeof(std::uint64_t), kPage);
}

std::size_t Wires::shown_bytes(bool has_slots, int ranks) {
  return (has_slots ? slots_bytes() : 0) + lines_bytes() +
         static_cast<std::size_t>(ranks - 1) * kMessageSlots * kMessageSlotBytes;
}

std::size_t Wires::words_bytes(int ranks) {
  return round_up(static_cast<std::size_t>(ranks) * sizeof(Pair), kPage);
}

Result<std::unique_ptr<Wires>> Wires::pin(std::shared_ptr<Device> device, Rank me,
                                          Meetings::AllShown all,
                                          std::unique_ptr<DeviceSlots> slots) {
  std::unique_ptr<Wires> wires(new Wires(std::move(device), me, std::move(all), std::move(slots)));
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(*wires->device_));
  const auto ranks = static_cast<std::uint32_t>(wires->all_.size());
  for (std::uint32_t r = 0; r < ranks; ++r) {
    ANYCCL_CHECK(wires->pin_memory(wires->all_[r].read,
                                   shown_bytes(wires->slots_ == nullptr, static_cast<int>(ranks)),
                                   !wires->all_[r].is_here));
    ANYCCL_CHECK(
        wires->pin_memory(wires->all_[r].written, words_bytes(static_cast<int>(ranks)), false));
  }
  return wires;
}

Status Wires::pin_memory(std::byte* memory, std::size_t bytes, bool read_only) {
  auto& counts = per_process<PinCounts>();
  const std::lock_guard lock(counts.mutex);
  int& count = counts.of[memory];
  if (count == 0) ANYCCL_CHECK(device_->pin(memory, bytes, read_only));
  pinned_.push_back(memory);
  ++count;
  return {};
}

Wires::~Wires() {
  const auto scope = DeviceScope::enter(*device_);
  auto& counts = per_process<PinCounts>();
  const std::lock_guard lock(counts.mutex);
  for (std::byte* const memory : pinned_) {
    if (--counts.of[memory] > 0) continue;
    counts.of.erase(memory);
    if (scope.ok()) static_cast<void>(device_->unpin(memory));
  }
}

std::byte* Wires::message_slot(std::uint32_t sender, std::uint32_t receiver,
                               std::uint32_t number) const {
  const std::size_t peer = receiver < sender ? receiver : receiver - 1;
  return first_line(sender) + lines_bytes() +
         (peer * kMessageSlots + number % kMessageSlots) * kMessageSlotBytes;
}

void Wires::meet(std::uint32_t sender, std::uint32_t receives) const {
  __atomic_store_n(met(sender), receives, __ATOMIC_RELEASE);
}

void Wires::agree(std::uint32_t call) const {
  __atomic_store_n(agreed(), call, __ATOMIC_RELEASE);
}

/// Numbers come in cycles. A word that is so far ahead of what it was is ahead of all that queues
/// wait for, and stays that, whenever it is set again.
void Wires::release() {
  constexpr std::uint32_t kAhead = 1U << 30;
  const auto words = words_of_me();
  const std::lock_guard lock(mutex_);
  for (std::size_t i = released_.size(); i < words.size(); ++i)
    released_.push_back(__atomic_load_n(words[i], __ATOMIC_RELAXED) + kAhead);
  for (std::size_t i = 0; i < words.size(); ++i)
    __atomic_store_n(words[i], released_[i], __ATOMIC_RELEASE);
}

/// All that this rank's queues wait for.
std::vector<std::uint32_t*> Wires::words_of_me() const {
  std::vector<std::uint32_t*> words;
  for (std::uint32_t r = 0; r < all_.size(); ++r) {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      words.push_back(published(me_, r, i));
      words.push_back(consumed(me_, r, i));
    }
    words.insert(words.end(), {sent(me_, r), received(me_, r), met(r)});
  }
  words.push_back(agreed());
  words.push_back(stop());
  return words;
}

}  // namespace anyccl
