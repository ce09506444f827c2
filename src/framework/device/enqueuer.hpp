#pragma once
// The second executor: puts all steps of one collective call at one rank into queues of its device,
// before they run. Execution is the first one, which does them on the host.
//
// 1. There are two queues. What a tile sends before it reads anything goes into `out`, a few tiles
//    ahead, and so does the publishing of stored results; everything else goes into `in`.
// 2. Between ranks, words say what is there and what has been read: see Wires. Between the two
//    queues, moments do.
// 3. No wait is for work that is put into a queue later, at any rank: steps are in the order of the
//    plan, tile by tile, and what goes ahead waits only for slots that earlier tiles have used.

#include <array>
#include <functional>
#include <vector>

#include "framework/collective/execution.hpp"
#include "framework/device/wires.hpp"

namespace anyccl {

/// What all calls of one rank share, one after the other.
struct QueueState {
  /// A slot of this rank.
  struct Slot {
    std::uint32_t number = 0;            ///< That of the publication in it,
    std::vector<std::uint32_t> readers;  ///< which these ranks read; none: nothing lies there.
    DeviceMoment filled = nullptr;       ///< When `out` filled it last.
  };
  DeviceQueue out = nullptr, in = nullptr;
  DeviceMoment written = nullptr;  ///< In `in`, of what `out` publishes.
  std::array<Slot, Wires::kSlots> slots;
  std::vector<std::uint32_t> numbers;  ///< By rank: how many publications there were.
};

/// One call on its way into the queues, which already wait for what comes before it.
///
/// Threads: one at a time. Everything is borrowed.
class Enqueuer {
 public:
  /// The memory of a call: of the device, or pinned.
  struct Buffers {
    const std::byte* input;
    std::byte *output, *scratch;
  };
  /// Returns when the queues have room for so many commands each.
  using Pause = std::function<Status(std::uint32_t commands)>;

  /// `call`: with equal blocks, and neither stages nor portions, but for those of averages.
  Enqueuer(Device& device, const Wires& wires, QueueState& state, const PreparedCall& call, Rank me,
           const Buffers& buffers, const Pause& pause);
  /// Puts all of it into the queues. Errors: of the device, and of `pause`; then it is in there in
  /// part.
  Status run();
  /// For what the queues wait last, of each rank: data, or that it has read some.
  std::vector<WordOfRank> last_waits() const;

 private:
  /// Where a step writes: own memory, or this rank's slot.
  struct Target {
    std::byte *own = nullptr, *slot = nullptr;
  };
  /// Memory that `out` reads, to fill a slot.
  struct Reading {
    const std::byte* begin;
    std::size_t bytes;
    std::uint32_t slot;
  };
  void note_last_reads();
  std::size_t leading_sends() const;
  std::uint32_t commands_of_tile() const;
  Status put_tile(std::uint32_t tile, std::size_t first, std::size_t last);
  std::uint32_t number_of(const Ref& ref) const;
  std::uint32_t own_number(const PlanStep& s) const;
  std::byte* own_slot(const PlanStep& s) const { return wires_.slot(me_, own_number(s)); }
  const std::byte* operand(const PlanStep& s, const BoundStep& b, std::uint32_t k) const;
  bool is_read(const PlanStep& s) const;
  Status await(DeviceQueue queue, std::uint32_t rank, std::uint32_t* word, std::uint32_t number,
               std::vector<WordOfRank>& waits);
  Status copy(DeviceQueue queue, std::byte* to, const std::byte* from, std::size_t bytes);
  Status await_slot(DeviceQueue queue, const PlanStep& s);
  Status tell_readers(DeviceQueue queue, const PlanStep& s);
  Status publish_written(const PlanStep& s, const BoundStep& b);
  Status publish(const PlanStep& s, const BoundStep& b);
  Status receive(const PlanStep& s, const BoundStep& b);
  Status tell_owners(const PlanStep& s);
  Status before_write(const std::byte* to, std::size_t bytes);
  Status combine(const PlanStep& s, const BoundStep& b, const Target& target);
  Status move(const PlanStep& s, const BoundStep& b, const Target& target);
  Status divide_result();
  Status await_readers();

  Device& device_;
  const Wires& wires_;
  QueueState& state_;
  const PreparedCall& call_;
  const Plan& plan_;
  const std::uint32_t me_;
  const Buffers buffers_;
  const Pause& pause_;
  const Reduction combine_;    // of steps
  const std::size_t leading_;  // steps
  std::uint32_t tile_ = 0;
  const BoundPlan* bound_ = nullptr;  // of this tile
  std::byte* base_[3] = {};           // by Space, at this tile
  std::vector<bool> last_reads_;      // by ref: no later step of a tile reads that publication
  std::vector<Reading> readings_;     // in the order of `out`
  std::vector<const void*> sources_;
  std::vector<WordOfRank> data_, reads_;  // the last wait of each kind, by rank
};

}  // namespace anyccl
