#include "platform/transport/segment/pairs.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl::shm {
namespace {

/// Messages are lent only if they would not fit the ring anyway: so a sender waits for its receiver
/// no earlier than without.
constexpr std::size_t kLendMessagesFrom = kPairSlots * kPairPiece + 1;

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

/// How many pieces, a new one of a message of so many bytes among them, may be on the way to a
/// peer. On a shared core a sender that runs ahead gains nothing: its peer waits until it has the
/// core, and finds all of them then.
std::uint64_t Pairs::most_unread(std::size_t message) const {
  constexpr std::uint64_t kShort = 3, kLong = 2;  // measured: docs/adr/0026
  if (!cores_are_shared_) return kPairSlots;
  if (message <= in_line_) return kShort;
  return std::clamp<std::uint64_t>((message + kPairPiece - 1) / kPairPiece, kLong, kPairSlots);
}

bool Pairs::has_room(Peer& peer, std::size_t message) const {
  const std::uint64_t most = most_unread(message);
  if (peer.pieces_sent - peer.pieces_taken < most) return true;
  peer.pieces_taken = taken_by(peer);
  return peer.pieces_sent - peer.pieces_taken < most;
}

bool Pairs::may_lend(std::size_t bytes) const {
  const bool forced = neighbours_.copy() == CopyFrom::cma || neighbours_.copy() == CopyFrom::window;
  return neighbours_.copy() != CopyFrom::staged &&
         bytes >= (forced ? kLendFrom : kLendMessagesFrom);
}

std::byte* Pairs::reserve(Peer& peer, std::size_t bytes, std::size_t message) {
  if (!has_room(peer, message)) return nullptr;
  if (bytes <= in_line_) return line_to(peer).before_word(with_size(bytes));
  const std::size_t pieces = layout_.pieces(uindex(peer.rank));
  if (segment_.shared && !peer.pieces_populated)
    if (Status status = populate(segment_.out, pieces, layout_.pair_bytes()); !status.ok())
      return neighbours_.problem(std::move(status));
  peer.pieces_populated = true;
  return out_ + pieces + peer.pieces_sent % kPairSlots * kPairPiece;
}

bool Pairs::lend_message(const Outgoing& out, const std::byte* source) {
  if (!may_lend(out.total)) return false;
  Peer& peer = neighbours_.of(out.readers[0].rank);
  if (!has_room(peer, out.total)) return false;
  static const std::size_t foreign_from = ForeignMemory::is_fast() ? 0 : Neighbours::kNever;
  // Not to threads: a sender that gives up might return memory that its reader reads just then.
  const auto lent = neighbours_.lend(out, source, {Neighbours::kNever, foreign_from});
  if (!lent) return false;
  std::memcpy(line_to(peer).before_word(with_size(sizeof *lent)), &*lent, sizeof *lent);
  reveal(peer, out.digest, out.total | kLent);
  peer.pieces_lent = peer.pieces_sent;
  return true;
}

bool Pairs::send_at_once(Rank to, std::uint32_t digest, std::span<const std::byte> message) {
  Peer& peer = neighbours_.of(uindex(to));
  if (message.size() > kPairPiece || may_lend(message.size()) || peer.state != PeerState::present)
    return false;
  std::byte* const room = reserve(peer, message.size(), message.size());
  if (room == nullptr) return false;
  copy_few(room, message.data(), message.size());
  reveal(peer, digest, message.size());
  return true;
}

void Pairs::reveal(Peer& peer, std::uint32_t digest, Size size) {
  Line& line = line_to(peer);
  std::memcpy(line.before_word(sizeof size), &size, sizeof size);
  line.word.store(word_of(++peer.pieces_sent, digest), std::memory_order_release);
  neighbours_.ring(peer);
  prefetch_for_writing(&line_to(peer));  // the reader has it
}

bool Pairs::peek(Rank from, Envelope& envelope) {
  const Peer& peer = neighbours_.of(uindex(from));
  const Line& line = line_from(peer);
  // Pairs with the release in reveal(): the size and what it points to are there.
  const std::uint64_t word = line.word.load(std::memory_order_acquire);
  if (!is_piece(word, peer.pieces_read + 1)) return false;
  const Size size = size_in(line);
  envelope = {static_cast<std::uint32_t>(word), size & ~kLent, (size & kLent) != 0};
  return true;
}

bool Pairs::receive_at_once(Rank from, std::uint32_t digest, std::uint32_t looks,
                            std::span<std::byte> message) {
  Peer& peer = neighbours_.of(uindex(from));
  const Line& line = line_from(peer);
  const std::uint64_t word = word_of(peer.pieces_read + 1, digest);
  for (;;) {
    const std::uint64_t found = line.word.load(std::memory_order_acquire);  // as in peek()
    if (found == word) break;
    if (is_piece(found, peer.pieces_read + 1) || --looks == 0) return false;
    relax();
  }
  if (message.size() > kPairPiece || size_in(line) != message.size()) return false;
  const std::byte* const piece =
      message.size() <= in_line_
          ? line.before_word(with_size(message.size()))
          : peer.out + layout_.pieces(uindex(me_)) + peer.pieces_read % kPairSlots * kPairPiece;
  copy_few(message.data(), piece, message.size());
  consume(peer);
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
  consume(neighbours_.of(in.rank));
}

void Pairs::consume(Peer& peer) {
  // Pairs with the acquire in taken_by(): the publisher may overwrite the piece.
  at<PairProgress>(out_, layout_.pair_progress(uindex(peer.rank)))
      .consumed.store(++peer.pieces_read, std::memory_order_release);
  neighbours_.ring(peer);
}

}  // namespace anyccl::shm
