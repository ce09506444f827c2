#include "platform/transport/segment/pairs.hpp"

#include "base/error.hpp"

namespace anyccl::shm {
namespace {

/// Messages are lent only if they would not fit the ring anyway: so a sender waits for its receiver
/// no earlier than without.
constexpr std::size_t kLendMessagesFrom = kPairSlots * kPairPiece + 1;
constexpr std::size_t kNever = ~std::size_t{0};

std::uint64_t word_of(std::uint64_t piece, std::uint32_t digest) {
  return piece << 32 | digest;
}
bool is_piece(std::uint64_t word, std::uint64_t piece) {
  return word >> 32 == static_cast<std::uint32_t>(piece);
}

std::uint64_t size_in(const Line& line) {
  std::uint64_t size = 0;
  std::memcpy(&size, line.before_word(sizeof size), sizeof size);
  return size;
}

}  // namespace

bool Pairs::has_room(Peer& peer) const {
  if (peer.pieces_sent - peer.pieces_taken < kPairSlots) return true;
  peer.pieces_taken = taken_by(peer);
  return peer.pieces_sent - peer.pieces_taken < kPairSlots;
}

std::byte* Pairs::reserve(const Outgoing& out) {
  Peer& peer = neighbours_.of(out.readers[0].rank);
  if (!has_room(peer)) return nullptr;
  if (out.bytes <= in_line_) return line_to(peer).before_word(with_size(out.bytes));
  const std::size_t pieces = layout_.pieces(uindex(peer.rank));
  if (segment_.shared && !peer.pieces_populated)
    if (Status status = populate(segment_.out, pieces, layout_.pair_bytes()); !status.ok())
      return neighbours_.problem(std::move(status));
  peer.pieces_populated = true;
  return out_ + pieces + peer.pieces_sent % kPairSlots * kPairPiece;
}

bool Pairs::lend_message(const Outgoing& out, const std::byte* source) {
  const bool forced = neighbours_.copy() == CopyFrom::cma || neighbours_.copy() == CopyFrom::window;
  if (neighbours_.copy() == CopyFrom::staged ||
      out.total < (forced ? kLendFrom : kLendMessagesFrom))
    return false;
  Peer& peer = neighbours_.of(out.readers[0].rank);
  if (!has_room(peer)) return false;
  const auto lent = neighbours_.lend(out, source, kNever);
  if (!lent) return false;
  std::memcpy(line_to(peer).before_word(with_size(sizeof *lent)), &*lent, sizeof *lent);
  reveal(out, out.total | kLent);
  peer.pieces_lent = peer.pieces_sent;
  return true;
}

void Pairs::reveal(const Outgoing& out, Size size) {
  Peer& peer = neighbours_.of(out.readers[0].rank);
  Line& line = line_to(peer);
  std::memcpy(line.before_word(sizeof size), &size, sizeof size);
  line.word.store(word_of(++peer.pieces_sent, out.digest), std::memory_order_release);
  neighbours_.ring(peer);
  prefetch_for_writing(&line_to(peer));  // the reader has it
}

bool Pairs::peek(Rank from, std::uint32_t looks, Envelope& envelope) {
  const Peer& peer = neighbours_.of(uindex(from));
  const Line& line = line_from(peer);
  // Pairs with the release in reveal(): the size and what it points to are there.
  std::uint64_t word = line.word.load(std::memory_order_acquire);
  for (; !is_piece(word, peer.pieces_read + 1); word = line.word.load(std::memory_order_acquire)) {
    if (--looks == 0) return false;
    relax();
  }
  const Size size = size_in(line);
  envelope = {static_cast<std::uint32_t>(word), size & ~kLent, (size & kLent) != 0};
  return true;
}

const std::byte* Pairs::poll(const Incoming& in) {
  Peer& peer = neighbours_.of(in.rank);
  const Line& line = line_from(peer);
  const std::uint64_t word = line.word.load(std::memory_order_acquire);  // as in peek()
  if (!is_piece(word, peer.pieces_read + 1)) return nullptr;
  if (word != word_of(peer.pieces_read + 1, in.digest))
    return neighbours_.problem(error(Code::invalid_usage,
                                     "rank {} sends another data type than rank {} receives",
                                     in.rank, index(me_)));
  const Size size = size_in(line);
  Descriptor d{Descriptor::staged, 0, peer.pieces_read % kPairSlots * kPairPiece, in.bytes,
               size & ~kLent};
  if ((size & kLent) != 0) {
    std::memcpy(&d, line.before_word(with_size(sizeof d)), sizeof d);
  } else if (in.bytes <= in_line_ && d.total == in.total) {
    return line.before_word(with_size(in.bytes));
  }
  return neighbours_.follow(peer, d, in, peer.out + layout_.pieces(uindex(me_)),
                            layout_.pair_bytes());
}

void Pairs::consumed(const Incoming& in) {
  Peer& peer = neighbours_.of(in.rank);
  // Pairs with the acquire in taken_by(): the publisher may overwrite the piece.
  at<PairProgress>(out_, layout_.pair_progress(in.rank))
      .consumed.store(++peer.pieces_read, std::memory_order_release);
  neighbours_.ring(peer);
}

}  // namespace anyccl::shm
