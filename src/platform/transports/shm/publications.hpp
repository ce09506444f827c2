#pragma once
// The publications of the shm transport lie in slots of the publisher's shared memory, or a slot
// describes where: in the staging ring, in a window, or in the publisher's private memory. Readers
// poll the word at the end of the slot. shm_transport.hpp has the rules.

#include <functional>
#include <memory>
#include <vector>

#include "platform/transport/publications.hpp"
#include "platform/transports/shm/peers.hpp"
#include "platform/transports/shm/slot_tracker.hpp"

namespace anyccl::shm {

/// The publications of one rank in one communicator.
class ShmPublications final : public Publications {
 public:
  /// Everything is borrowed.
  ShmPublications(Rank me, const Layout& layout, Segment& mine, PeerTable& peers);

  void announce(const CallRecord& call) override;
  /// Whether it would be lent in a window. False for what fits a line, which offer() takes, too.
  bool would_take(std::size_t bytes, const std::byte* memory, bool lendable) const override;
  /// Publishes `source` in a slot, or lends it; refuses what would have to be staged.
  Offered offer(const Outgoing& out, const std::byte* source, bool lendable) override;
  std::byte* reserve(const Outgoing& out) override;
  void publish(const Outgoing& out) override;
  const std::byte* poll(const Incoming& in) override;
  void consumed(const Incoming&) override {}  // posted progress says it
  void post(std::uint64_t operation, std::uint32_t lane, std::uint32_t tick) override;
  /// Shows peers that this rank has finished `operation`, and ends its reads; returns settled().
  bool finished(std::uint64_t operation, bool everyone) override;
  /// Whether the readers of all memory that was lent have read it.
  bool settled() override;
  /// Whether `peer` has not yet read all that was lent to it.
  bool is_behind(Rank peer) override;

  /// Returns the last collectives that `peer` has entered and finished, and the message that it
  /// waits for.
  PeerCalls calls_of(Rank peer) const;
  bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) const;
  /// Whether something waited for readers' progress since the last forget_waits().
  bool waits_for_readers() const { return waits_for_readers_; }
  void forget_waits() { waits_for_readers_ = false; }
  void when_grown(std::function<void()> function) { grown_ = std::move(function); }
  /// Gives the pages of the ring back, if it was not used since the last call and nobody reads it.
  GivenBack give_back();
  /// Bytes of the ring whose pages exist.
  std::size_t bytes() const { return populated_ + layout_.slot(slots_); }

 private:
  /// Whether `slot` may be written: populates it if need be; if readers still use it, notes that.
  bool is_free(std::uint32_t slot);
  static bool fits_line(const Outgoing& out) { return out.bytes <= out.line_bytes && !out.sized; }
  static bool fits_line(const Incoming& in) { return in.whole <= in.line_bytes && !in.sized; }
  Line& line(std::uint32_t slot) { return at<Line>(out_, layout_.line(slot)); }
  /// Publishes `source`, which must fit, in its slot; busy if the slot is not free.
  Offered put_in_line(const Outgoing& out, const std::byte* source);
  void reveal(const Outgoing& out, bool staged);
  bool populate_slots(std::uint32_t slot);
  bool populate_ring(std::size_t end);

  const Layout layout_;
  Segment& segment_;
  std::byte* out_;
  PeerTable& peers_;
  std::vector<const std::byte*> shown_;  // what each rank shows, by rank
  PeerProgress seen_;
  SlotTracker tracker_;
  bool waits_for_readers_ = false;
  std::size_t extent_ = 0;           // found by reserve(), described by publish()
  std::size_t populated_ = 0;        // bytes of the ring
  std::uint64_t used_ = 0;           // of the ring, when give_back() looked last
  std::function<void()> grown_;      // see when_grown()
  std::uint32_t slots_;              // populated
  std::vector<std::uint32_t> lent_;  // slots whose readers read our own memory
};

}  // namespace anyccl::shm
