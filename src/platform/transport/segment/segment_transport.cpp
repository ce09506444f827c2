#include "platform/transport/segment/segment_transport.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/transport/segment/ledger.hpp"
#include "platform/transport/segment/peers.hpp"
#include "platform/transport/segment/windows.hpp"

namespace anyccl {
namespace {

using shm::Peer;
using shm::Segment;

constexpr std::uint64_t kLookForNotices = 16;  // calls

/// From here on threads of one process read each other's buffers where they are: measured.
constexpr std::size_t kDirectFrom = 131072;

std::uint64_t word_of(std::uint64_t operation, std::uint32_t digest, std::uint32_t round) {
  return operation << 32 | static_cast<std::uint32_t>(digest + round * 0x9E3779B1U);
}

class SegmentTransport final : public Transport {
 public:
  SegmentTransport(Rank me, const Layout& layout, std::shared_ptr<Segment> mine,
                   std::vector<Peer> peers, const SegmentOptions& options)
      : me_(me),
        layout_(layout),
        segment_(std::move(mine)),
        out_(segment_->out.mapping.data()),
        in_(segment_->in.mapping.data()),
        peers_(std::move(peers)),
        of_rank_(layout.ranks, 0),
        shown_(layout.ranks, nullptr),
        seen_(layout.ranks),
        ledger_(layout_, seen_),
        in_line_(options.line_bytes),
        copy_(options.copy),
        windows_(peers_, socket_mutex_, at<Presence>(out_, layout_.presence()).notices) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      of_rank_[uindex(peers_[i].rank)] = i;
      shown_[uindex(peers_[i].rank)] = peers_[i].out;
      ranks_.push_back(peers_[i].rank);
      seen_.add(uindex(peers_[i].rank), at<Progress>(peers_[i].out, layout_.progress()));
    }
    lent_.reserve(std::size_t{layout.banks} * layout.slots);
  }

  std::string_view name() const override { return segment_->shared ? "shm" : "loopback"; }
  std::span<const Rank> peers() const override { return ranks_; }

  void begin(const CallRecord& call) override {
    write_record(at<CallLine>(out_, layout_.call_line(call.sequence)), call);
    windows_.close_returned();
    if (call.sequence % kLookForNotices == 0) read_notices();
    // Readers of eight calls ago have this line: getting it back takes as long as a call.
    prefetch_for_writing(&line(ledger_.slot_of(call.sequence + 1, 0)));
  }

  bool would_take(std::size_t bytes, const std::byte* memory, bool lendable) const override {
    return lendable && bytes >= kLendFrom && copy_ != CopyFrom::staged && copy_ != CopyFrom::cma &&
           Arena::of_process().find(memory, bytes).has_value();
  }

  Offered offer(const Outgoing& out, const std::byte* source, bool lendable) override {
    if (out.context != Context::collective) return Offered::refused;
    if (fits_line(out.bytes, out.sized)) return put_in_line(out, source);
    if (!lendable || out.bytes < kLendFrom || copy_ == CopyFrom::staged) return Offered::refused;
    const std::uint32_t slot = ledger_.slot_of(out.operation, out.number);
    if (!ledger_.is_free(slot)) return Offered::busy;
    const auto lent = lend(out, source);
    if (!lent) return Offered::refused;
    describe(line(slot), *lent);
    reveal(out, false);
    lent_.push_back(slot);
    return Offered::lent;
  }
  bool needs_landing() const override {
    return copy_ == CopyFrom::cma && std::any_of(peers_.begin(), peers_.end(), [](const Peer& p) {
             return static_cast<bool>(p.memory);
           });
  }

  std::byte* reserve(const Outgoing& out) override {
    if (out.context == Context::point_to_point) return reserve_piece(out);
    const std::uint32_t slot = ledger_.slot_of(out.operation, out.number);
    if (!ledger_.is_free(slot)) return nullptr;
    if (fits_line(out.bytes, out.sized)) return line(slot).before_word(out.bytes);
    if (!ring_populated_ && !populate_ring()) return nullptr;
    stretch_ = ledger_.find_stretch(out.bytes);
    return stretch_ == Ledger::kNone ? nullptr : out_ + layout_.ring() + stretch_;
  }

  void publish(const Outgoing& out) override {
    if (out.context == Context::point_to_point) return publish_piece(out);
    const bool staged = !fits_line(out.bytes, out.sized);
    if (staged)
      describe(line(ledger_.slot_of(out.operation, out.number)),
               {Descriptor::staged, 0, stretch_, out.bytes, out.total});
    reveal(out, staged);
  }

  std::size_t capacity() const override { return layout_.ring_bytes; }
  std::size_t piece_bytes() const override { return kPairPiece; }

  const std::byte* poll(const Incoming& in) override {
    if (in.context == Context::point_to_point) return poll_piece(in);
    const Line& line =
        at<Line>(shown_[in.rank], layout_.line(ledger_.slot_of(in.operation, in.number)));
    // Pairs with the release in reveal(): who sees the word also sees the line and what it points
    // to.
    const std::uint64_t word = word_of(in.operation, in.digest, layout_.round_of(in.number));
    for (std::uint32_t look = 1; line.word.load(std::memory_order_acquire) != word; ++look) {
      if (look >= in.looks) return nullptr;
      relax();
    }
    if (fits_line(in.whole, in.sized)) return line.before_word(in.whole) + in.offset;
    return follow(peer_of(in.rank), line, in, layout_.ring(), layout_.ring_bytes);
  }

  void consumed(const Incoming& in) override {
    if (in.context != Context::point_to_point) return;
    Peer& peer = peer_of(in.rank);
    // Pairs with the acquire in reserve_piece(): the publisher may overwrite the piece.
    at<PairProgress>(out_, layout_.pair_progress(in.rank))
        .consumed.store(++peer.pieces_read, std::memory_order_release);
    ring_bell(peer);
  }

  void post(std::uint64_t operation, std::uint32_t lane, std::uint32_t tick) override {
    at<Progress>(out_, layout_.progress())
        .lane[lane]
        .store(operation << 24 | tick, std::memory_order_release);
  }

  bool finished(std::uint64_t operation, bool everyone) override {
    at<Progress>(out_, layout_.progress()).finished.store(operation, std::memory_order_release);
    if (everyone) seen_.everyone_finished(operation - 1);
    return settled();
  }

  bool settled() override {
    while (!lent_.empty() && ledger_.is_free(lent_.back())) lent_.pop_back();
    return lent_.empty();
  }

  bool is_behind(Rank peer) override {
    return std::any_of(lent_.begin(), lent_.end(),
                       [&](std::uint32_t slot) { return ledger_.is_read_by(slot, uindex(peer)); });
  }

  Status check() override {
    for (Peer& peer : peers_) pump(peer);
    return problem_;
  }
  PeerState state(Rank peer) override { return peer_of(uindex(peer)).state; }

  bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return read_record(at<CallLine>(peer_of(uindex(peer)).out, layout_.call_line(sequence)),
                       sequence, record);
  }

  void sleep(std::chrono::nanoseconds most) override {
    auto& bell = at<Inbox>(in_, 0).doorbell;
    auto& sleeping = at<Presence>(out_, layout_.presence()).sleeping;
    const std::uint32_t before = bell.load(std::memory_order_acquire);
    // A peer that published just before it could see this does not ring: callers keep `most` short.
    sleeping.store(1, std::memory_order_seq_cst);
    const timespec limit{
        0, static_cast<long>(
               std::min<std::chrono::nanoseconds>(most, std::chrono::milliseconds(100)).count())};
    ::syscall(SYS_futex, &bell, FUTEX_WAIT, before, &limit, nullptr, 0);
    sleeping.store(0, std::memory_order_relaxed);
  }
  void wake() override { ring(at<Inbox>(in_, 0).doorbell); }

  void abort(const Status& why) override {
    ControlMessage message;
    message.kind = ControlMessage::abort;
    message.code = static_cast<int>(why.code());
    why.message().copy(message.text, sizeof message.text - 1);
    tell_all(message);
  }

  void leave() override {
    at<Presence>(out_, layout_.presence()).left.store(1, std::memory_order_release);
    ControlMessage message;
    message.kind = ControlMessage::goodbye;
    tell_all(message);
  }

 private:
  bool fits_line(std::size_t bytes, bool sized) const { return bytes <= in_line_ && !sized; }
  Peer& peer_of(std::uint32_t rank) { return peers_[of_rank_[rank]]; }
  Line& line(std::uint32_t slot) { return at<Line>(out_, layout_.line(slot)); }
  static void describe(Line& line, const Descriptor& d) { std::memcpy(line.data, &d, sizeof d); }

  /// How readers find `source`, if all of them can read it where it is.
  std::optional<Descriptor> lend(const Outgoing& out, const std::byte* source) {
    if (copy_ != CopyFrom::cma)
      if (const auto window = Arena::of_process().find(source, out.bytes))
        if (const auto number = windows_.number_of(*window))
          return Descriptor{Descriptor::window, *number,
                            static_cast<std::uint64_t>(source - window->base), out.bytes,
                            out.total};
    if (copy_ == CopyFrom::window || (copy_ != CopyFrom::cma && out.bytes < kDirectFrom)) return {};
    for (const ReaderOf& reader : out.readers) {
      const Peer& peer = peer_of(reader.rank);
      if (!peer.same_process && (copy_ != CopyFrom::cma || !peer.reads_us)) return {};
    }
    return Descriptor{Descriptor::memory, 0, reinterpret_cast<std::uint64_t>(source), out.bytes,
                      out.total};
  }

  Offered put_in_line(const Outgoing& out, const std::byte* source) {
    const std::uint32_t slot = ledger_.slot_of(out.operation, out.number);
    if (!ledger_.is_free(slot)) return Offered::busy;
    copy_few(line(slot).before_word(out.bytes), source, out.bytes);
    reveal(out, false);
    return Offered::copied;
  }

  void reveal(const Outgoing& out, bool staged) {
    line(ledger_.slot_of(out.operation, out.number))
        .word.store(word_of(out.operation, out.digest, layout_.round_of(out.number)),
                    std::memory_order_release);
    ledger_.record(out, staged);
    for (const ReaderOf& reader : out.readers)
      if (at<Presence>(shown_[reader.rank], layout_.presence())
              .sleeping.load(std::memory_order_relaxed) != 0)
        ring_bell(peer_of(reader.rank));
  }

  void ring_bell(Peer& peer) {
    if (at<Presence>(peer.out, layout_.presence()).sleeping.load(std::memory_order_relaxed) == 0)
      return;
    ring(at<Inbox>(peer.in, 0).doorbell);
  }
  static void ring(std::atomic<std::uint32_t>& bell) {
    // Pairs with the acquire in sleep().
    bell.fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  /// The wanted part of a publication that lies where the descriptor says. Nothing in it is
  /// trusted.
  const std::byte* follow(Peer& peer, const Line& line, const Incoming& in, std::size_t room,
                          std::size_t room_bytes) {
    Descriptor d;
    std::memcpy(&d, line.data, sizeof d);
    if (in.sized && d.total != in.total)
      return problem(error(Code::invalid_usage,
                           "rank {} sends {} bytes to rank {}, which expects {} bytes from it",
                           in.rank, d.total, index(me_), in.total));
    if (d.bytes != (in.sized ? in.bytes : in.whole))
      return problem(error(Code::invalid_usage,
                           "rank {} publishes {} bytes where rank {} expects {}", in.rank, d.bytes,
                           index(me_), in.sized ? in.bytes : in.whole));
    if (d.kind == Descriptor::memory) return fetch(peer, d.position + in.offset, in);
    const std::byte* base = peer.out + room;
    std::size_t size = room_bytes;
    if (d.kind == Descriptor::window) {
      auto window = peer.windows.find(d.number);
      if (window == peer.windows.end()) {  // its announcement was sent first
        pump(peer);
        window = peer.windows.find(d.number);
        if (window == peer.windows.end()) return nullptr;
      }
      base = window->second.base;
      size = window->second.bytes;
    }
    if (d.position > size || d.bytes > size - d.position)
      return problem(error(Code::remote_error, "rank {} published {} bytes at {} of {}", in.rank,
                           d.bytes, d.position, size));
    return base + d.position + in.offset;
  }

  /// The wanted part of the private memory of a peer.
  const std::byte* fetch(const Peer& peer, std::uint64_t address, const Incoming& in) {
    if (peer.same_process) return reinterpret_cast<const std::byte*>(address);
    if (!peer.memory || in.into == nullptr)
      return problem(
          error(Code::remote_error, "rank {} publishes memory that cannot be read here", in.rank));
    const Status read = peer.memory.read(in.into, address, in.bytes);
    if (read.ok()) return in.into;
    if (read.code() == Code::remote_error) return nullptr;  // its socket tells that it has ended
    return problem(error(read.code(), "rank {}: {}", in.rank, read.message()));
  }

  std::nullptr_t problem(Status status) {
    if (problem_.ok()) problem_ = std::move(status);
    return nullptr;
  }

  bool populate_ring() {
    if (segment_->shared)
      if (Status status = populate(segment_->out, layout_.ring(), layout_.ring_bytes); !status.ok())
        return problem(std::move(status)), false;
    return ring_populated_ = true;
  }

  // --- point to point: a ring of pieces per pair -----------------------------------------------
  std::byte* reserve_piece(const Outgoing& out) {
    Peer& peer = peer_of(out.readers[0].rank);
    const auto& theirs = at<PairProgress>(peer.out, layout_.pair_progress(uindex(me_))).consumed;
    if (peer.pieces_sent - theirs.load(std::memory_order_acquire) >= kPairSlots) return nullptr;
    const std::size_t pieces = layout_.pieces(uindex(peer.rank));
    if (segment_->shared && !peer.pieces_populated)
      if (Status status = populate(segment_->out, pieces, layout_.pair_bytes()); !status.ok())
        return problem(std::move(status));
    peer.pieces_populated = true;
    return out_ + pieces + peer.pieces_sent % kPairSlots * kPairPiece;
  }

  void publish_piece(const Outgoing& out) {
    Peer& peer = peer_of(out.readers[0].rank);
    Line& line = at<Line>(out_, layout_.pair_line(uindex(peer.rank), peer.pieces_sent));
    describe(line, {Descriptor::staged, 0, peer.pieces_sent % kPairSlots * kPairPiece, out.bytes,
                    out.total});
    ++peer.pieces_sent;
    line.word.store(word_of(peer.pieces_sent, out.digest, 0), std::memory_order_release);
    ring_bell(peer);
  }

  bool peek(Rank from, std::uint64_t, Envelope& envelope) override {
    Peer& peer = peer_of(uindex(from));
    const Line& line = at<Line>(peer.out, layout_.pair_line(uindex(me_), peer.pieces_read));
    const std::uint64_t word = line.word.load(std::memory_order_acquire);
    if (word >> 32 != static_cast<std::uint32_t>(peer.pieces_read + 1)) return false;
    Descriptor d;
    std::memcpy(&d, line.data, sizeof d);
    envelope = {static_cast<std::uint32_t>(word), d.total};
    return true;
  }

  const std::byte* poll_piece(const Incoming& in) {
    Peer& peer = peer_of(in.rank);
    const Line& line = at<Line>(peer.out, layout_.pair_line(uindex(me_), peer.pieces_read));
    const std::uint64_t word = line.word.load(std::memory_order_acquire);
    if (word >> 32 != static_cast<std::uint32_t>(peer.pieces_read + 1)) return nullptr;
    if (word != word_of(peer.pieces_read + 1, in.digest, 0))
      return problem(error(Code::invalid_usage,
                           "rank {} sends another data type than rank {} receives", in.rank,
                           index(me_)));
    return follow(peer, line, in, layout_.pieces(uindex(me_)), layout_.pair_bytes());
  }

  // --- control socket --------------------------------------------------------------------------
  /// Once in a while, so that windows that nobody reads any more are unmapped.
  void read_notices() {
    for (Peer& peer : peers_) {
      const std::uint32_t now =
          at<Presence>(peer.out, layout_.presence()).notices.load(std::memory_order_acquire);
      if (now != std::exchange(peer.notices, now)) pump(peer);
    }
  }

  void tell_all(const ControlMessage& message) {
    const std::lock_guard lock(socket_mutex_);
    for (Peer& peer : peers_)  // best effort: who is gone needs no message
      if (Status sent =
              peer.socket.send(message, {-1, -1}, Deadline::in(std::chrono::nanoseconds(0)));
          !sent.ok())
        log(LogLevel::trace, "rank {} to rank {}: {}", index(me_), index(peer.rank),
            sent.message());
  }

  void pump(Peer& peer) {
    ControlMessage message;
    std::array<UniqueFd, 2> fds;
    for (;;) {
      const auto got = peer.state == PeerState::dead ? ControlSocket::Got::nothing
                                                     : peer.socket.receive(message, fds);
      if (got == ControlSocket::Got::nothing) return;
      if (got == ControlSocket::Got::end) {
        if (peer.state == PeerState::present)
          peer.state =
              at<Presence>(peer.out, layout_.presence()).left.load(std::memory_order_acquire) != 0
                  ? PeerState::left
                  : PeerState::dead;
        return;
      }
      if (message.kind == ControlMessage::goodbye) peer.state = PeerState::left;
      if (message.kind == ControlMessage::abort)
        problem(Status(static_cast<Code>(std::clamp(message.code, 1, 10)), message.text));
      if (message.kind == ControlMessage::window || message.kind == ControlMessage::no_window)
        if (Status taken = shm::take_notice(peer, message, fds[0]); !taken.ok())
          problem(std::move(taken));
    }
  }

  Rank me_;
  Layout layout_;
  std::shared_ptr<Segment> segment_;
  std::byte* out_;
  std::byte* in_;
  std::vector<Peer> peers_;
  std::vector<std::size_t> of_rank_;     // index in peers_
  std::vector<const std::byte*> shown_;  // what each rank shows, by rank
  std::vector<Rank> ranks_;
  PeerProgress seen_;
  Ledger ledger_;
  std::size_t in_line_;  // the most bytes that lie before their word
  CopyFrom copy_;
  std::size_t stretch_ = 0;  // found by reserve(), described by publish()
  bool ring_populated_ = false;
  std::vector<std::uint32_t> lent_;  // slots whose readers read our own memory
  std::mutex socket_mutex_;          // sending: abort() may come from another thread
  shm::Windows windows_;
  Status problem_;
};

}  // namespace

Result<SegmentGroup> make_segment_transport(Rank me, std::vector<LocalPeer> local,
                                            const SegmentOptions& options, Deadline deadline) {
  Layout layout;
  layout.ranks = options.ranks;
  layout.banks = options.banks;
  layout.slots = options.slots;
  layout.slot_lines = static_cast<std::uint32_t>(options.line_bytes / sizeof(Line) +
                                                 1);  // the word needs the rest of the last one
  layout.ring_bytes = options.ring_bytes;
  const bool shared =
      std::any_of(local.begin(), local.end(), [](const LocalPeer& p) { return !p.same_process; });
  ANYCCL_TRY(const std::shared_ptr<Segment> mine, shm::make_segment(layout, shared));
  ANYCCL_TRY(shm::Met met, shm::meet(me, std::move(local), mine, layout, deadline));
  SegmentGroup group;
  group.others = std::move(met.others);
  if (!met.reached.empty())
    group.transport =
        std::make_unique<SegmentTransport>(me, layout, mine, std::move(met.reached), options);
  return group;
}

}  // namespace anyccl
