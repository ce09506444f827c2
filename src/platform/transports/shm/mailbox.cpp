#include "platform/transports/shm/mailbox.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/read_once.hpp"
#include "platform/reduce/copy.hpp"
#include "platform/transport/message_digest.hpp"

namespace anyccl::shm {
namespace {

/// Messages are lent only if they would not fit the ring anyway: so a sender waits for its receiver
/// no earlier than without.
constexpr std::size_t kLendMessagesFrom = kMailboxSlots * kFragmentBytes + 1;

/// The number of a fragment has 24 bits: those of a slot differ by kMailboxSlots.
std::uint64_t word_of(std::uint64_t fragment, std::uint64_t digest) {
  return fragment << message_digest::kBits | digest;
}
std::uint64_t digest_in(std::uint64_t word) {
  return word & ((std::uint64_t{1} << message_digest::kBits) - 1);
}
bool is_fragment(std::uint64_t word, std::uint64_t fragment) {
  return word - digest_in(word) == fragment << message_digest::kBits;
}

std::uint64_t size_in(const Line& line) {
  return read_once<std::uint64_t>(line.before_word(sizeof(std::uint64_t)));
}

}  // namespace

/// How many fragments may be on the way to a peer, a new one of a message of this many bytes among
/// them. On a shared core a sender that runs ahead gains nothing: its peer waits until it has the
/// core, and finds all of them then.
std::uint64_t Mailboxes::most_unread(std::size_t message) const {
  constexpr std::uint64_t kShort = 3, kLong = 2;  // measured: docs/adr/0026
  if (!cores_are_shared_) return kMailboxSlots;
  if (message <= in_line_) return kShort;
  return std::clamp<std::uint64_t>((message + kFragmentBytes - 1) / kFragmentBytes, kLong,
                                   kMailboxSlots);
}

bool Mailboxes::has_room(Peer& peer, std::size_t message) const {
  const std::uint64_t most = most_unread(message);
  if (peer.fragments_sent - peer.fragments_taken < most) return true;
  peer.fragments_taken = taken_by(peer);
  return peer.fragments_sent - peer.fragments_taken < most;
}

bool Mailboxes::populate_lines(Peer& peer) {
  const std::size_t begin = layout_.slot(layout_.mailbox_slot(uindex(peer.rank)));
  if (Status status = segment_.populate(begin, line_bytes()); !status.ok())
    return peers_.own_problem(status), false;
  peer.lines_populated = true;
  return true;
}

bool Mailboxes::may_lend(std::size_t bytes) const {
  const bool forced = peers_.copy() == ShmCopy::cma || peers_.copy() == ShmCopy::window;
  return peers_.copy() != ShmCopy::staged && bytes >= (forced ? kLendFrom : kLendMessagesFrom);
}

std::byte* Mailboxes::reserve(Peer& peer, std::size_t bytes, std::size_t message) {
  if (!has_lines(peer) || !has_room(peer, message)) return nullptr;
  if (bytes <= in_line_) return line_to(peer).before_word(with_size(bytes));
  const std::size_t fragments = layout_.fragments(uindex(peer.rank));
  if (!peer.fragments_populated)
    if (Status status = segment_.populate(fragments, layout_.mailbox_bytes()); !status.ok())
      return peers_.own_problem(status);
  peer.fragments_populated = true;
  return out_ + fragments + peer.fragments_sent % kMailboxSlots * kFragmentBytes;
}

Messages::Sent Mailboxes::send(const Fragment& out, const std::byte* source) {
  Peer& peer = peers_.of(uindex(out.peer));
  if (peer.state != PeerState::present) return Sent::busy;  // it would go nowhere
  if (out.number == 0) {
    peers_.maintain_windows();
    if (lend(peer, out, source)) return Sent::lent;
  }
  std::byte* const room = reserve(peer, out.bytes, out.total);
  if (room == nullptr) return Sent::busy;
  copy_bytes(room, source, out.bytes);
  reveal(peer, out.digest, out.total);
  return Sent::copied;
}

bool Mailboxes::lend(Peer& peer, const Fragment& out, const std::byte* source) {
  if (out.bytes == 0 || !may_lend(out.total) || !has_lines(peer) || !has_room(peer, out.total))
    return false;
  static const std::size_t cma_from = CmaReader::is_fast() ? 0 : PeerTable::kNever;
  // Not to threads: a sender that gives up might return memory that its reader reads just then.
  const ReaderOf reader{.rank = static_cast<std::uint16_t>(out.peer)};
  const auto lent =
      peers_.lend({source, out.total}, out.total, {&reader, 1}, {PeerTable::kNever, cma_from});
  if (!lent) return false;
  std::memcpy(line_to(peer).before_word(with_size(sizeof *lent)), &*lent, sizeof *lent);
  reveal(peer, out.digest, out.total | kLent);
  peer.fragments_lent = peer.fragments_sent;
  return true;
}

bool Mailboxes::send_at_once(Rank to, std::uint64_t digest, std::span<const std::byte> message) {
  peers_.maintain_windows();
  Peer& peer = peers_.of(uindex(to));
  if (message.size() > kFragmentBytes || may_lend(message.size()) ||
      peer.state != PeerState::present)
    return false;
  std::byte* const room = reserve(peer, message.size(), message.size());
  if (room == nullptr) return false;
  copy_few(room, message.data(), message.size());
  reveal(peer, digest, message.size());
  return true;
}

void Mailboxes::reveal(Peer& peer, std::uint64_t digest, Size size) {
  Line& line = line_to(peer);
  std::memcpy(line.before_word(sizeof size), &size, sizeof size);
  line.word.store(word_of(++peer.fragments_sent, digest), std::memory_order_release);
  peers_.ring(peer);
  prefetch_for_writing(&line_to(peer));  // the reader has it
}

std::size_t Mailboxes::bytes() const {
  std::size_t sum = 0;
  for (const Peer& peer : peers_.all()) {
    if (peer.lines_populated) sum += line_bytes();
    if (peer.fragments_populated) sum += layout_.mailbox_bytes();
  }
  return sum;
}

bool Mailboxes::settled(Rank reader) {
  const Peer& peer = peers_.of(uindex(reader));
  return peer.state != PeerState::dead &&
         (peer.fragments_lent <= peer.fragments_taken || peer.fragments_lent <= taken_by(peer));
}

bool Mailboxes::peek(Rank from, std::uint64_t, Envelope& envelope) {
  const Peer& peer = peers_.of(uindex(from));
  const Line& line = line_from(peer);
  // Pairs with the release in reveal(): the size and what it points to are there.
  const std::uint64_t word = line.word.load(std::memory_order_acquire);
  if (!is_fragment(word, peer.fragments_read + 1)) return false;
  const Size size = size_in(line);
  envelope = {digest_in(word), size & ~kLent, (size & kLent) != 0};
  return true;
}

bool Mailboxes::receive_at_once(Rank from, std::uint64_t digest, std::uint32_t poll_budget,
                                std::span<std::byte> message) {
  peers_.maintain_windows();
  Peer& peer = peers_.of(uindex(from));
  const Line& line = line_from(peer);
  const std::uint64_t word = word_of(peer.fragments_read + 1, digest);
  for (;;) {
    const std::uint64_t found = line.word.load(std::memory_order_acquire);  // as in peek()
    if (found == word) break;
    if (is_fragment(found, peer.fragments_read + 1) || --poll_budget == 0) return false;
    relax();
  }
  if (message.size() > kFragmentBytes || size_in(line) != message.size()) return false;
  const std::byte* const fragment = message.size() <= in_line_
                                        ? line.before_word(with_size(message.size()))
                                        : peer.out + layout_.fragments(uindex(me_)) +
                                              peer.fragments_read % kMailboxSlots * kFragmentBytes;
  copy_few(message.data(), fragment, message.size());
  consume(peer);
  return true;
}

bool Mailboxes::receive(const Fragment& in, std::size_t offset, std::byte* into) {
  Peer& peer = peers_.of(uindex(in.peer));
  const Line& line = line_from(peer);
  bool lent = false;
  const std::byte* const found = find(peer, line, in, offset, into, lent);
  if (found == nullptr) return false;
  if (found != into) copy_bytes(into, found, in.bytes);
  // A sender that gives up says so before its memory is its caller's again.
  if (lent && !peers_.check().ok()) return false;
  if (lent && offset + in.bytes < in.total) return true;
  consume(peer);
  peers_.maintain_windows();
  return true;
}

/// The bytes that `in` wants, and whether they are lent; those of private memory it reads into
/// `into`. Null: they are not there, or there is a problem.
const std::byte* Mailboxes::find(Peer& peer, const Line& line, const Fragment& in,
                                 std::size_t offset, std::byte* into, bool& lent) {
  const std::uint64_t word = line.word.load(std::memory_order_acquire);  // as in peek()
  if (!is_fragment(word, peer.fragments_read + 1)) return nullptr;
  const Size size = size_in(line);
  if (word != word_of(peer.fragments_read + 1, in.digest))
    return peers_.problem(message_digest::other_type(
        {index(in.peer), digest_in(word), size & ~kLent}, {index(me_), in.digest, in.total}));
  const std::span fragments{peer.out + layout_.fragments(uindex(me_)), layout_.mailbox_bytes()};
  lent = (size & kLent) != 0;
  if (lent) {
    const auto d = read_once<Descriptor>(line.before_word(with_size(sizeof(Descriptor))));
    return peers_.follow(peer, d, {offset, in.bytes, in.total, true, in.total, into}, fragments);
  }
  if (in.bytes <= in_line_ && size == in.total) return line.before_word(with_size(in.bytes));
  return peers_.follow(
      peer,
      {Descriptor::staged, 0, peer.fragments_read % kMailboxSlots * kFragmentBytes, in.bytes, size},
      {0, in.bytes, in.bytes, true, in.total, into}, fragments);
}

void Mailboxes::consume(Peer& peer) {
  // Pairs with the acquire in taken_by(): the publisher may overwrite the fragment.
  at<MailboxProgress>(out_, layout_.mailbox_progress(uindex(peer.rank)))
      .consumed.store(++peer.fragments_read, std::memory_order_release);
  peers_.ring(peer);
}

}  // namespace anyccl::shm
