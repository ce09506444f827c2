#pragma once
// The wires between the devices of a communicator's ranks: slots, through which their queues pass
// data on, and words of the host, by which these queues wait for each other.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/communicator/meetings.hpp"
#include "framework/device/device_slots.hpp"
#include "platform/device/device.hpp"

namespace anyccl {

/// A queue waits for a rank until the word is at least this, cyclically.
struct WordOfRank {
  std::uint32_t rank;
  std::uint32_t* word;
  std::uint32_t at_least;

  bool is_there() const {
    return static_cast<std::int32_t>(__atomic_load_n(word, __ATOMIC_RELAXED) - at_least) >= 0;
  }
};

/// Slots and words of all ranks, as one rank has them. Publication number i of a rank, counted over
/// all its calls, lies in its slot i % kSlots. A word is in the memory of the rank whose queues
/// wait for it, so that the rank itself can end these waits; the rank that it speaks of writes it.
///
/// Threads: any.
class Wires {
 public:
  static constexpr std::uint32_t kSlots = 8;
  /// The most that a publication has, and room for chunks that are rounded up.
  static constexpr std::size_t kMostPublished = std::size_t{1} << 20;
  static constexpr std::size_t kSlotBytes = kMostPublished + 4096;
  static constexpr std::size_t slots_bytes() { return kSlots * kSlotBytes; }
  /// Messages have slots of their own, for each peer.
  static constexpr std::uint32_t kMessageSlots = 4;
  static constexpr std::size_t kMessageSlotBytes = std::size_t{512} << 10;
  /// What a rank shows the others: its slots, unless they are in memory of a device, lines, and the
  /// slots of its messages.
  static std::size_t shown_bytes(bool has_slots, int ranks);
  static std::size_t words_bytes(int ranks);

  /// Lets queues of the device use them. `slots`: null if what the ranks show holds them. Errors:
  /// device_error.
  static Result<std::unique_ptr<Wires>> pin(std::shared_ptr<Device> device, Rank me,
                                            Meetings::AllShown all,
                                            std::unique_ptr<DeviceSlots> slots);
  /// Waits until all queues of the device have done what they have.
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  std::byte* slot(std::uint32_t rank, std::uint32_t number) const {
    std::byte* const first = slots_ == nullptr ? all_[rank].read : slots_->of(rank);
    return first + number % kSlots * kSlotBytes;
  }
  /// For `waiter`: at least number + 1 when that publication of `publisher` is there.
  std::uint32_t* published(std::uint32_t waiter, std::uint32_t publisher,
                           std::uint32_t number) const {
    return &pair(waiter, publisher).published[number % kSlots];
  }
  /// For `owner`: at least number + 1 when `reader` has read that publication of the owner.
  std::uint32_t* consumed(std::uint32_t owner, std::uint32_t reader, std::uint32_t number) const {
    return &pair(owner, reader).consumed[number % kSlots];
  }
  /// Lines of a rank, of two exchanges in turn: a rank begins one when it has the data of all ranks
  /// from the one before it, for which these were through with the one before that.
  std::uint64_t* lines(std::uint32_t rank, std::uint32_t number) const {
    return reinterpret_cast<std::uint64_t*>(first_line(rank)) + number % 2 * DeviceExchange::kLines;
  }
  /// Where part `number` lies of all that `sender` has ever sent to `receiver`.
  std::byte* message_slot(std::uint32_t sender, std::uint32_t receiver, std::uint32_t number) const;
  /// For `receiver`: how many parts the sender has sent it.
  std::uint32_t* sent(std::uint32_t receiver, std::uint32_t sender) const {
    return &pair(receiver, sender).sent;
  }
  /// For `sender`: how many parts the receiver has got from it.
  std::uint32_t* received(std::uint32_t sender, std::uint32_t receiver) const {
    return &pair(sender, receiver).received;
  }
  /// For this rank alone: how many receives have met a message of `sender` that fits.
  std::uint32_t* met(std::uint32_t sender) const { return &pair(me_, sender).met; }
  void meet(std::uint32_t sender, std::uint32_t receives) const;
  /// Not 0: no exchange of this rank waits.
  std::uint32_t* stop() const { return &pair(me_, me_).stop; }
  /// Where the slots are, if not in what the ranks show; else null.
  DeviceSlots* device_slots() const { return slots_.get(); }
  /// For this rank alone: at least the number of the last call in which all ranks have met.
  std::uint32_t* agreed() const { return &pair(me_, me_).agreed; }
  void agree(std::uint32_t call) const;
  /// Ends all waits of this rank's queues, also those that come later. To be called again while
  /// some are left: a peer may write the same words meanwhile.
  void release();

 private:
  /// Words of two ranks, in the memory of one: the other one writes them, but for the last ones.
  struct alignas(64) Pair {
    std::uint32_t published[kSlots], consumed[kSlots];
    std::uint32_t sent, received;
    std::uint32_t met, agreed, stop;
  };
  Wires(std::shared_ptr<Device> device, Rank me, Meetings::AllShown all,
        std::unique_ptr<DeviceSlots> slots)
      : device_(std::move(device)),
        me_(uindex(me)),
        all_(std::move(all)),
        slots_(std::move(slots)) {}
  static std::size_t lines_bytes();
  std::byte* first_line(std::uint32_t rank) const {
    return all_[rank].read + (slots_ == nullptr ? slots_bytes() : 0);
  }
  std::vector<std::uint32_t*> words_of_me() const;
  Status pin_memory(std::byte* memory, std::size_t bytes, bool read_only);
  Pair& pair(std::uint32_t waiter, std::uint32_t other) const {
    return reinterpret_cast<Pair*>(all_[waiter].written)[other];
  }

  const std::shared_ptr<Device> device_;
  const std::uint32_t me_;
  const Meetings::AllShown all_;
  const std::unique_ptr<DeviceSlots> slots_;  // null: they are what the ranks show
  std::vector<std::byte*> pinned_;
  std::mutex mutex_;
  std::vector<std::uint32_t> released_;  // what release() has written; empty: nothing yet
};

}  // namespace anyccl
