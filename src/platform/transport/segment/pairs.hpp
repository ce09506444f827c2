#pragma once

#include "base/cpu.hpp"
#include "platform/transport/segment/neighbours.hpp"

namespace anyccl::shm {

/// Messages between this rank and each of its peers: per pair and direction a ring of slots, which
/// come in the order of the pieces. A slot is lines like those of collectives: before the word that
/// numbers the piece lies the size of the whole message, and before that the piece itself if it is
/// short, or where it is if the whole message is lent. Longer pieces lie in the room of the slot.
class Pairs {
 public:
  /// All but `line_bytes` is borrowed. Pieces that fit so many bytes together with the size lie in
  /// their slot.
  Pairs(Rank me, const Layout& layout, Segment& mine, Neighbours& neighbours,
        std::size_t line_bytes)
      : me_(me),
        layout_(layout),
        segment_(mine),
        out_(mine.out.mapping.data()),
        neighbours_(neighbours),
        in_line_(line_bytes < sizeof(Size) ? 0 : line_bytes - sizeof(Size)) {}

  /// The functions of Transport, for this context.
  std::byte* reserve(const Outgoing& out);
  void publish(const Outgoing& out) { reveal(out, out.total); }
  bool lend_message(const Outgoing& out, const std::byte* source);
  bool settled(Rank reader) {
    const Peer& peer = neighbours_.of(uindex(reader));
    return peer.pieces_lent <= peer.pieces_taken || peer.pieces_lent <= taken_by(peer);
  }
  bool peek(Rank from, std::uint32_t looks, Envelope& envelope);
  const std::byte* poll(const Incoming& in);
  void consumed(const Incoming& in);

 private:
  using Size = std::uint64_t;
  static constexpr Size kLent = Size{1} << 63;  // beside the size: the slot holds a Descriptor
  /// What lies before the word, in front of so many bytes.
  static std::size_t with_size(std::size_t bytes) { return (bytes + 7) / 8 * 8 + sizeof(Size); }

  Line& line_to(const Peer& peer) const {
    return at<Line>(out_, layout_.pair_line(uindex(peer.rank), peer.pieces_sent));
  }
  const Line& line_from(const Peer& peer) const {
    return at<Line>(peer.out, layout_.pair_line(uindex(me_), peer.pieces_read));
  }
  std::uint64_t taken_by(const Peer& peer) const {
    // Pairs with the release in consumed(): the piece was read before.
    return at<PairProgress>(peer.out, layout_.pair_progress(uindex(me_)))
        .consumed.load(std::memory_order_acquire);
  }
  bool has_room(Peer& peer) const;
  void reveal(const Outgoing& out, Size size);

  Rank me_;
  const Layout& layout_;
  Segment& segment_;
  std::byte* out_;
  Neighbours& neighbours_;
  std::size_t in_line_;  // the most bytes of a piece that lie in their slot
};

}  // namespace anyccl::shm
