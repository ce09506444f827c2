#pragma once
// A message that goes through queues of devices, at one of its ends.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "framework/device/channel.hpp"
#include "framework/device/enqueued_operation.hpp"
#include "framework/device/issued_device_calls.hpp"

namespace anyccl {

/// One send or receive. Parts for which its queue has no room are put there later, when they wait
/// for nothing.
class QueuedMessage final : public EnqueuedOperation {
 public:
  using All = std::vector<std::shared_ptr<QueuedMessage>>;

  /// `program`: the queue whose work by now it comes after.
  QueuedMessage(std::shared_ptr<DeviceQueues> queues, Channel& channel, const Call& call,
                DeviceQueue program);

  /// First gives them their places, and lets them begin to meet the other ends. Returns what the
  /// following function wants of them. See problem() for errors.
  static IssuedDeviceCalls::One begin(const All& messages);
  /// Puts all of them into their queues as far as there is room, without a wait, part by part by
  /// turns.
  static void put_together(const All& messages, IssuedDeviceCalls::One begun);
  /// Puts the rest of one there that was alone. Waits for room; a failure of the communicator ends
  /// that.
  void put_rest();
  /// Or puts there what needs no other message of this rank to be there. The rest follows later.
  static void put_first_parts(const All& messages, IssuedDeviceCalls::One begun);
  /// Why it is not in its queue, or not all of it.
  const Status& problem() const { return problem_; }
  /// Whether it has its place in the channel, and will meet the other end.
  bool has_met() const { return has_met_; }

  std::shared_ptr<Comm> shared_comm() const;

  std::string what() const override;
  void awaited(std::vector<Rank>& ranks) const override;
  /// Waits until all parts are in the queue.
  Status hold(DeviceQueue queue) override;

 private:
  /// Parts that were put into queues at once, and whether these had room for all of them.
  struct Turn {
    std::uint32_t parts = 0;
    bool has_room = true;
  };
  static constexpr std::uint32_t kFirstSent = Wires::kMessageSlots, kFirstReceived = 1,
                                 kAllParts = ~0U;
  static Turn put_turn(const All& messages, bool sends, std::uint32_t each);
  bool sends() const { return call_.collective == Collective::send; }
  void begin();
  Status take_place();
  Turn put_here(std::uint32_t most);
  Result<Turn> put(std::uint32_t most, bool only_ready);
  Status put_part();
  bool put_more() override;
  bool has_place() const override { return has_begun_.load(std::memory_order_acquire); }

  Channel& channel_;
  const Call call_;
  const DeviceQueue program_;
  std::byte* const at_;
  const std::size_t bytes_, part_;
  Status problem_;  // of its caller's part
  bool has_met_ = false;
  std::size_t put_ = 0;      // bytes
  std::uint64_t place_ = 0;  // in the channel
  std::atomic<bool> has_begun_{false};
};

}  // namespace anyccl
