#pragma once

#include <cstdint>
#include <vector>

#include "platform/device/device.hpp"
#include "simulate/devices/device_costs.hpp"

namespace anyccl::cli {

/// A device that writes down what is put into its queues, instead of doing it. Its own memory lies
/// at the given addresses, and all other memory is the host's; nothing is read or written.
class CommandLog final : public Device {
 public:
  /// One command of a queue.
  struct Command {
    enum Kind : std::uint8_t { work, record, wait, write_word, wait_word };
    Kind kind = work;
    std::uint32_t queue = 0;
    std::uint64_t number = 0;  ///< A place that is recorded or waited for; the word's value.
    const std::uint32_t* word = nullptr;
    double begin_s = 0;                          ///< Until work begins; then it takes
    double compute_s = 0, to_s = 0, from_s = 0;  ///< the engines at once,
    double after_s = 0;                          ///< and until the last bytes have arrived.
  };

  CommandLog(const DeviceCosts& costs, std::uintptr_t memory, std::size_t bytes)
      : costs_(costs), memory_(memory), bytes_(bytes) {}
  const std::vector<Command>& commands() const { return commands_; }
  std::uint32_t queues() const { return queues_; }

  int number() const override { return 0; }
  const DeviceAbilities& abilities() const override { return abilities_; }
  Status enter() override { return {}; }
  void leave() override {}
  Result<MemoryFacts> facts(const void*) const override { return MemoryFacts(); }
  Result<void*> allocate(std::size_t) override { return nullptr; }
  Status release(void*) override { return {}; }
  Status pin(void*, std::size_t, bool) override { return {}; }
  Status unpin(void*) override { return {}; }
  Result<SharedHandle> share(const void*) override { return SharedHandle(); }
  Result<void*> open_shared(const SharedHandle&) override { return nullptr; }
  Status close_shared(void*) override { return {}; }
  Result<DeviceQueue> make_queue(bool) override;
  Status drop_queue(DeviceQueue) override { return {}; }
  Result<bool> is_recording(DeviceQueue) override { return false; }
  Status copy(DeviceQueue queue, void* to, const void* from, std::size_t bytes) override;
  Status reduce(DeviceQueue queue, Reduction, void* dst, std::span<const void* const> sources,
                std::size_t count) override;
  Status exchange(DeviceQueue, const DeviceExchange&) override { return {}; }
  Status wait_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t at_least) override;
  Status write_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t value) override;
  Status call(DeviceQueue, void (*)(void*), void*) override { return {}; }
  Result<DeviceMoment> make_moment() override;
  Status drop_moment(DeviceMoment) override { return {}; }
  Status record(DeviceQueue queue, DeviceMoment moment) override;
  Status wait(DeviceQueue queue, DeviceMoment moment) override;
  Result<bool> is_past(DeviceMoment) const override { return true; }

 private:
  bool is_own(const void* at) const {
    return reinterpret_cast<std::uintptr_t>(at) - memory_ < bytes_;
  }
  Status add(DeviceQueue queue, Command command);

  const DeviceCosts costs_;
  const std::uintptr_t memory_;
  const std::size_t bytes_;
  const DeviceAbilities abilities_;
  std::vector<Command> commands_;
  std::uint32_t queues_ = 0;
  std::vector<std::uint64_t> moments_;  // where each was recorded last; 0: nowhere
  std::uint64_t places_ = 0;
};

}  // namespace anyccl::cli
