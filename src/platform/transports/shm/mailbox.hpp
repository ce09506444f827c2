#pragma once
// Mailboxes carry the messages of the shm transport. Each pair and direction has a ring of slots in
// the sender's shared memory, in the order of the fragments. The receiver polls the word of the
// next slot, and shows in its own memory how many fragments it has read.

#include "base/cpu.hpp"
#include "platform/transport/messages.hpp"
#include "platform/transports/shm/peers.hpp"

namespace anyccl::shm {

/// Messages between this rank and each of its peers. A slot is lines like those of collectives. The
/// word that numbers the fragment follows the size of the whole message, which follows the fragment
/// itself if it is short, or its address if the whole message is lent. Longer fragments are in the
/// room of the slot.
class Mailboxes final : public Messages {
 public:
  /// All but `setup` is borrowed. Fragments that fit their `message_line_bytes` together with the
  /// size lie in their slot.
  Mailboxes(Rank me, const Layout& layout, Segment& mine, PeerTable& peers,
            const TransportSetup& setup)
      : me_(me),
        layout_(layout),
        segment_(mine),
        out_(mine.out()),
        peers_(peers),
        in_line_(setup.message_line_bytes < sizeof(Size) ? 0
                                                         : setup.message_line_bytes - sizeof(Size)),
        cores_are_shared_(setup.cores_are_shared) {}

  std::size_t fragment_bytes() const override { return kFragmentBytes; }
  Sent send(const Fragment& out, const std::byte* source) override;
  bool send_at_once(Rank to, std::uint64_t digest, std::span<const std::byte> message) override;
  /// Whether `reader` is not dead and has taken every message that was lent to it.
  bool settled(Rank reader) override;
  bool peek(Rank from, std::uint64_t message, Envelope& envelope) override;
  bool receive(const Fragment& in, std::size_t offset, std::byte* into) override;
  bool receive_at_once(Rank from, std::uint64_t digest, std::uint32_t poll_budget,
                       std::span<std::byte> message) override;
  /// Bytes of the slots and fragments whose pages exist.
  std::size_t bytes() const;

 private:
  using Size = std::uint64_t;
  static constexpr Size kLent = Size{1} << 63;  // set in the size: the slot holds a Descriptor
  /// Bytes before the word: the size, after a fragment of this length.
  static std::size_t with_size(std::size_t bytes) { return (bytes + 7) / 8 * 8 + sizeof(Size); }

  Line& line_to(const Peer& peer) const {
    return at<Line>(out_, layout_.mailbox_line(uindex(peer.rank), peer.fragments_sent));
  }
  const Line& line_from(const Peer& peer) const {
    return at<Line>(peer.out, layout_.mailbox_line(uindex(me_), peer.fragments_read));
  }
  std::uint64_t taken_by(const Peer& peer) const {
    // Pairs with the release in consume(): the fragment was read before.
    return at<MailboxProgress>(peer.out, layout_.mailbox_progress(uindex(me_)))
        .consumed.load(std::memory_order_acquire);
  }
  /// Bytes of the slots for one peer.
  std::size_t line_bytes() const { return layout_.slot(kMailboxSlots) - layout_.slot(0); }
  bool has_lines(Peer& peer) { return peer.lines_populated || populate_lines(peer); }
  bool populate_lines(Peer& peer);
  bool may_lend(std::size_t bytes) const;
  bool lend(Peer& peer, const Fragment& out, const std::byte* source);
  std::uint64_t most_unread(std::size_t message) const;
  bool has_room(Peer& peer, std::size_t message) const;
  std::byte* reserve(Peer& peer, std::size_t bytes, std::size_t message);
  void reveal(Peer& peer, std::uint64_t digest, Size size);
  const std::byte* find(Peer& peer, const Line& line, const Fragment& in, std::size_t offset,
                        std::byte* into, bool& lent);
  void consume(Peer& peer);

  Rank me_;
  const Layout& layout_;
  Segment& segment_;
  std::byte* out_;
  PeerTable& peers_;
  std::size_t in_line_;  // the most bytes of a fragment that lie in their slot
  bool cores_are_shared_;
};

}  // namespace anyccl::shm
