#include "platform/transport/shm/shm_transport.hpp"

#include <algorithm>
#include <cstring>

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "base/fences.hpp"
#include "base/futex.hpp"
#include "platform/transport/shm/mailbox.hpp"
#include "platform/transport/shm/peers.hpp"
#include "platform/transport/shm/slot_tracker.hpp"

namespace anyccl::shm {
namespace {

/// From here on threads of one process read each other's buffers where they are, in collectives:
/// measured.
constexpr std::size_t kDirectFrom = 131072;

std::uint64_t word_of(std::uint64_t operation, std::uint32_t digest, std::uint32_t round) {
  return operation << 32 | static_cast<std::uint32_t>(digest + round * 0x9E3779B1U);
}

class ShmTransport final : public Transport {
 public:
  ShmTransport(Rank me, const Layout& layout, std::shared_ptr<Segment> mine,
               std::vector<Peer> peers, const ShmOptions& options)
      : layout_(layout),
        segment_(std::move(mine)),
        out_(segment_->out.mapping.data()),
        in_(segment_->in.mapping.data()),
        peers_(me, layout_, segment_, std::move(peers), options.copy),
        mailboxes_(me, layout_, *segment_, peers_, options),
        shown_(layout.ranks, nullptr),
        seen_(layout.ranks),
        tracker_(layout_, seen_),
        in_line_(options.line_bytes),
        fenced_(join_fences() && peers_.are_fenced()) {
    for (const Peer& peer : peers_.all()) {
      shown_[uindex(peer.rank)] = peer.out;
      seen_.add(uindex(peer.rank), at<ProgressLine>(peer.out, layout_.progress()));
    }
    shown_[uindex(me)] = out_;
    lent_.reserve(std::size_t{layout.banks} * layout.slots);
  }

  std::string_view name() const override { return segment_->shared ? "shm" : "loopback"; }
  std::span<const Rank> peers() const override { return peers_.ranks(); }

  void begin(const CallRecord& call) override {
    write_record(at<CallLine>(out_, layout_.call_line(call.sequence)), call);
    peers_.maintain_windows();
    // Readers of eight calls ago have this line: getting it back takes as long as a call.
    prefetch_for_writing(&line(tracker_.slot_of(call.sequence + 1, 0)));
  }

  bool would_take(std::size_t bytes, const std::byte* memory, bool lendable) const override {
    return lendable && bytes >= kLendFrom && peers_.copy() != CopyFrom::staged &&
           peers_.copy() != CopyFrom::cma && Arena::of_process().find(memory, bytes).has_value();
  }

  Offered offer(const Outgoing& out, const std::byte* source, bool lendable) override {
    if (out.context != Context::collective) return Offered::refused;
    if (fits_line(out.bytes, out.sized)) return put_in_line(out, source);
    if (!lendable || out.bytes < kLendFrom || peers_.copy() == CopyFrom::staged)
      return Offered::refused;
    const std::uint32_t slot = tracker_.slot_of(out.operation, out.number);
    if (!is_free(slot)) return Offered::busy;
    const auto lent = peers_.lend(out, source, {kDirectFrom, PeerTable::kNever});
    if (!lent) return Offered::refused;
    describe(line(slot), *lent);
    reveal(out, false);
    lent_.push_back(slot);
    return Offered::lent;
  }
  bool needs_landing() const override { return peers_.reads_by_cma(); }

  std::byte* reserve(const Outgoing& out) override {
    if (out.context == Context::point_to_point) return mailboxes_.reserve(out);
    const std::uint32_t slot = tracker_.slot_of(out.operation, out.number);
    if (!is_free(slot)) return nullptr;
    if (fits_line(out.bytes, out.sized)) return line(slot).before_word(out.bytes);
    if (!ring_populated_ && !populate_ring()) return nullptr;
    extent_ = tracker_.find_extent(out.bytes);
    if (extent_ != SlotTracker::kNone) return out_ + layout_.ring() + extent_;
    waits_for_readers_ = true;
    return nullptr;
  }

  void publish(const Outgoing& out) override {
    if (out.context == Context::point_to_point) {
      peers_.maintain_windows();
      return mailboxes_.publish(out);
    }
    const bool staged = !fits_line(out.bytes, out.sized);
    if (staged)
      describe(line(tracker_.slot_of(out.operation, out.number)),
               {Descriptor::staged, 0, extent_, out.bytes, out.total});
    reveal(out, staged);
  }
  bool lend_message(const Outgoing& out, const std::byte* source) override {
    peers_.maintain_windows();
    return mailboxes_.lend_message(out, source);
  }
  bool send_at_once(Rank to, std::uint32_t digest, std::span<const std::byte> message) override {
    peers_.maintain_windows();
    return mailboxes_.send_at_once(to, digest, message);
  }

  std::size_t fragment_bytes() const override { return kFragmentBytes; }

  const std::byte* poll(const Incoming& in) override {
    if (in.context == Context::point_to_point) return mailboxes_.poll(in);
    const Line& line =
        at<Line>(shown_[in.rank], layout_.line(tracker_.slot_of(in.operation, in.number)));
    // Pairs with the release in reveal(): who sees the word also sees the line and what it points
    // to.
    const std::uint64_t word = word_of(in.operation, in.digest, layout_.round_of(in.number));
    for (std::uint32_t look = 1; line.word.load(std::memory_order_acquire) != word; ++look) {
      if (look >= in.poll_budget) return nullptr;
      relax();
    }
    if (fits_line(in.whole, in.sized)) return line.before_word(in.whole) + in.offset;
    Descriptor d;
    std::memcpy(&d, line.data, sizeof d);
    Peer& peer = peers_.of(in.rank);
    return peers_.follow(peer, d, in, peer.out + layout_.ring(), layout_.ring_bytes);
  }

  void consumed(const Incoming& in) override {
    if (in.context != Context::point_to_point) return;
    mailboxes_.consumed(in);
    peers_.maintain_windows();
  }
  bool peek(Rank from, std::uint64_t, Envelope& envelope) override {
    return mailboxes_.peek(from, envelope);
  }
  bool receive_at_once(Rank from, std::uint32_t digest, std::uint32_t poll_budget,
                       std::span<std::byte> message) override {
    peers_.maintain_windows();
    return mailboxes_.receive_at_once(from, digest, poll_budget, message);
  }

  void post(std::uint64_t operation, std::uint32_t lane, std::uint32_t tick) override {
    at<ProgressLine>(out_, layout_.progress())
        .lane[lane]
        .store(progress_word(operation, tick), std::memory_order_release);
  }

  bool finished(std::uint64_t operation, bool everyone) override {
    at<ProgressLine>(out_, layout_.progress()).finished.store(operation, std::memory_order_release);
    if (everyone) seen_.everyone_finished(operation - 1);
    return settled();
  }

  bool settled() override {
    while (!lent_.empty() && tracker_.is_free(lent_.back())) lent_.pop_back();
    if (!lent_.empty()) waits_for_readers_ = true;
    return lent_.empty();
  }
  bool settled(Rank reader) override { return mailboxes_.settled(reader); }

  bool is_behind(Rank peer) override {
    return std::any_of(lent_.begin(), lent_.end(),
                       [&](std::uint32_t slot) { return tracker_.is_read_by(slot, uindex(peer)); });
  }

  Status check() override { return peers_.check(); }
  PeerState state(Rank peer) override { return peers_.of(uindex(peer)).state; }

  bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return read_record(at<CallLine>(shown_[uindex(peer)], layout_.call_line(sequence)), sequence,
                       record);
  }

  // A publisher stores its word and then looks at `sleeping`; the sleeper stores `sleeping` and
  // then looks for the word. With a fence between the two on both sides at least one sees the
  // other.
  void prepare_sleep() override {
    waits_for_readers_ = false;
    rung_ = doorbell().load(std::memory_order_acquire);
    at<RankFlags>(out_, layout_.flags()).sleeping.store(1, std::memory_order_seq_cst);
    if (fenced_) fence_all();
  }
  void sleep(std::chrono::nanoseconds most) override {
    const auto limit = std::min<std::chrono::nanoseconds>(most, std::chrono::milliseconds(999));
    if (most.count() > 0) futex_wait(doorbell(), rung_, limit, FutexScope::shared);
    at<RankFlags>(out_, layout_.flags()).sleeping.store(0, std::memory_order_relaxed);
  }
  bool wakes_surely() const override { return fenced_ && !waits_for_readers_; }
  void wake() override { PeerTable::ring_doorbell(doorbell()); }

  void abort(const Status& why) override {
    ControlMessage message;
    message.kind = ControlMessage::abort;
    message.code = static_cast<int>(why.code());
    why.message().copy(message.text, sizeof message.text - 1);
    peers_.tell_all(message);
  }

  void leave() override {
    at<RankFlags>(out_, layout_.flags()).left.store(1, std::memory_order_release);
    ControlMessage message;
    message.kind = ControlMessage::goodbye;
    peers_.tell_all(message);
  }

 private:
  bool is_free(std::uint32_t slot) {
    const bool free = tracker_.is_free(slot);
    if (!free) waits_for_readers_ = true;
    return free;
  }
  bool fits_line(std::size_t bytes, bool sized) const { return bytes <= in_line_ && !sized; }
  Line& line(std::uint32_t slot) { return at<Line>(out_, layout_.line(slot)); }
  std::atomic<std::uint32_t>& doorbell() { return at<DoorbellPage>(in_, 0).doorbell; }
  static void describe(Line& line, const Descriptor& d) { std::memcpy(line.data, &d, sizeof d); }

  Offered put_in_line(const Outgoing& out, const std::byte* source) {
    const std::uint32_t slot = tracker_.slot_of(out.operation, out.number);
    if (!is_free(slot)) return Offered::busy;
    copy_few(line(slot).before_word(out.bytes), source, out.bytes);
    reveal(out, false);
    return Offered::copied;
  }

  void reveal(const Outgoing& out, bool staged) {
    line(tracker_.slot_of(out.operation, out.number))
        .word.store(word_of(out.operation, out.digest, layout_.round_of(out.number)),
                    std::memory_order_release);
    tracker_.record(out, staged);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // see prepare_sleep()
    for (const ReaderOf& reader : out.readers)
      if (at<RankFlags>(shown_[reader.rank], layout_.flags())
              .sleeping.load(std::memory_order_relaxed) != 0)
        peers_.ring(peers_.of(reader.rank));
  }

  bool populate_ring() {
    if (segment_->shared)
      if (Status status = populate(segment_->out, layout_.ring(), layout_.ring_bytes); !status.ok())
        return peers_.problem(std::move(status)), false;
    return ring_populated_ = true;
  }

  Layout layout_;
  std::shared_ptr<Segment> segment_;
  std::byte* out_;
  std::byte* in_;
  PeerTable peers_;
  Mailboxes mailboxes_;
  std::vector<const std::byte*> shown_;  // what each rank shows, by rank
  PeerProgress seen_;
  SlotTracker tracker_;
  std::size_t in_line_;             // the most bytes that lie before their word
  const bool fenced_;               // all can be made to fence
  bool waits_for_readers_ = false;  // since prepare_sleep(); who posts progress rings nobody
  std::uint32_t rung_ = 0;          // the doorbell, when prepare_sleep() looked
  std::size_t extent_ = 0;          // found by reserve(), described by publish()
  bool ring_populated_ = false;
  std::vector<std::uint32_t> lent_;  // slots whose readers read our own memory
};

}  // namespace

Result<ShmGroup> make_shm_transport(Rank me, std::vector<LocalPeer> local,
                                    const ShmOptions& options, Deadline deadline) {
  Layout layout;
  layout.ranks = options.ranks;
  layout.banks = options.banks;
  layout.slots = options.slots;
  layout.slot_lines = static_cast<std::uint32_t>(options.line_bytes / sizeof(Line) +
                                                 1);  // the word needs the rest of the last one
  layout.ring_bytes = options.ring_bytes;
  const bool shared =
      std::any_of(local.begin(), local.end(), [](const LocalPeer& p) { return !p.same_process; });
  ANYCCL_TRY(const std::shared_ptr<Segment> mine, make_segment(layout, shared));
  ANYCCL_TRY(ConnectResult connected, connect_peers(me, std::move(local), mine, layout, deadline));
  ShmGroup group;
  group.others = std::move(connected.others);
  if (!connected.reached.empty())
    group.transport =
        std::make_unique<ShmTransport>(me, layout, mine, std::move(connected.reached), options);
  return group;
}

}  // namespace anyccl::shm
