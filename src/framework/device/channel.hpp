#pragma once
// What one rank's device sends to one peer, or receives from it, goes through a queue of its own: a
// late peer holds up everything that is behind it in a queue.

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "framework/call/around_call.hpp"
#include "framework/device/queue_room.hpp"
#include "framework/device/wires.hpp"

namespace anyccl {

/// One direction between this rank and a peer. Messages are in its queue one after the other, each
/// in parts.
///
/// Threads: one at a time, with the mutex and in a DeviceScope.
class Channel {
 public:
  /// All is borrowed. `sends`: to the peer; else it receives.
  Channel(Device& device, const Wires& wires, Rank me, Rank peer, bool sends)
      : device_(device),
        wires_(wires),
        me_(uindex(me)),
        peer_(uindex(peer)),
        sends_(sends),
        arrival_(wires, uindex(peer)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  std::mutex& mutex() { return mutex_; }
  /// Before anything else of a message: `moment` is where the program's queue is now. Errors:
  /// invalid_usage, if that is recorded.
  Status note_place(DeviceQueue program, DeviceMoment moment);
  /// After all work in the queue.
  void drop();
  DeviceQueue queue() const { return queue_; }
  /// What a message of this channel does on the host when it has met the peer's; null: nothing.
  AroundCall* around() { return sends_ ? nullptr : &arrival_; }

  /// Messages keep the order in which they have got their places.
  std::uint64_t take_place() { return places_++; }
  bool is_turn_of(std::uint64_t place) const { return place == turn_; }
  void end_turn() { ++turn_; }

  /// Bytes of the parts of a message, but for its last one. Both ends have the same.
  static std::size_t part_bytes(std::size_t message);
  /// Whether there is room in the queue for the commands of a part. A message's first one has the
  /// others that a message needs, too.
  Result<bool> take_room(bool is_first) { return room_.take(device_, queue_, is_first ? 8 : 3); }
  /// A message begins, after its place in the program, and a receive when the two ends have met;
  /// the moment is there then.
  Status begin_message(DeviceMoment moment);
  /// Puts the next part, which lies in memory of the device, into the queue.
  Status put_part(std::byte* at, std::size_t bytes);
  /// Whether the next part would wait for nothing: what it needs of the peer is there.
  bool is_ready() const;
  /// For what the queue waits last.
  WordOfRank last_wait() const { return last_wait_; }

 private:
  /// Lets the queue go on to the next receive.
  class Arrival final : public AroundCall {
   public:
    Arrival(const Wires& wires, std::uint32_t peer) : wires_(wires), peer_(peer) {}
    void before() override {}
    Status after() override {
      wires_.meet(peer_, ++met_);
      return {};
    }

   private:
    const Wires& wires_;
    const std::uint32_t peer_;
    std::uint32_t met_ = 0;
  };
  Status make_queue();
  WordOfRank next_wait() const;

  Device& device_;
  const Wires& wires_;
  const std::uint32_t me_, peer_;
  const bool sends_;
  Arrival arrival_;
  std::mutex mutex_;
  DeviceQueue queue_ = nullptr;
  QueueRoom room_;
  std::uint64_t places_ = 0, turn_ = 0;
  std::uint32_t messages_ = 0, parts_ = 0;  // in the queue, since ever
  WordOfRank last_wait_{};
};

}  // namespace anyccl
