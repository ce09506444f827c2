#include "platform/transports/shm/publications.hpp"

#include <algorithm>
#include <cstring>

#include "base/cpu.hpp"
#include "base/read_once.hpp"
#include "base/round_up.hpp"

namespace anyccl::shm {
namespace {

/// From here on threads of one process read each other's buffers where they are, in collectives:
/// measured.
constexpr std::size_t kDirectFrom = 131072;

std::uint64_t word_of(std::uint64_t operation, std::uint32_t digest, std::uint32_t round) {
  return operation << 32 | static_cast<std::uint32_t>(digest + round * 0x9E3779B1U);
}

void describe(Line& line, const Descriptor& d) {
  std::memcpy(line.data, &d, sizeof d);
}

/// As many lines as a core fetches at the same time: measured, docs/adr/0074.
constexpr std::size_t kFetchedLines = 16;

/// Starts to fetch the first lines of a slot where `bytes` bytes will lie, for writing: the readers
/// of the publication before have them. The last line comes with announce().
void fetch_for_writing(Line& last, std::size_t bytes) {
  std::byte* const first = last.before_word(bytes);
  std::byte* const end = std::min<std::byte*>(first + kFetchedLines * sizeof(Line), last.data);
  for (std::byte* at = first; at < end; at += sizeof(Line)) prefetch_for_writing(at);
}

}  // namespace

ShmPublications::ShmPublications(Rank me, const Layout& layout, Segment& mine, PeerTable& peers)
    : Publications({.needs_landing = peers.reads_by_cma(), .has_slots = true}),
      layout_(layout),
      segment_(mine),
      out_(mine.out()),
      peers_(peers),
      shown_(layout.ranks, nullptr),
      seen_(layout.ranks),
      tracker_(layout_, seen_),
      slots_(layout_.first_slots()) {
  for (const Peer& peer : peers_.all()) {
    shown_[uindex(peer.rank)] = peer.out;
    seen_.add(uindex(peer.rank), at<ProgressLine>(peer.out, layout_.progress()));
  }
  shown_[uindex(me)] = out_;
  lent_.reserve(std::size_t{layout.banks} * layout.slots);
}

void ShmPublications::announce(const CallRecord& call) {
  write_record(at<CallLine>(out_, layout_.call_line(call.sequence)), call);
  peers_.maintain_windows();
  // Readers of eight calls ago have this line: getting it back takes as long as a call.
  prefetch_for_writing(&line(tracker_.slot_of(call.sequence + 1, 0)));
}

bool ShmPublications::call_of(Rank peer, std::uint64_t sequence, CallRecord& record) const {
  return read_record(at<CallLine>(shown_[uindex(peer)], layout_.call_line(sequence)), sequence,
                     record);
}

PeerCalls ShmPublications::calls_of(Rank peer) const {
  const std::byte* const theirs = shown_[uindex(peer)];
  PeerCalls calls;
  calls.is_complete = true;
  for (std::uint64_t i = 0; i < kCallHistory; ++i)  // any order: pairs with write_record()
    calls.entered = std::max(
        calls.entered,
        at<CallLine>(theirs, layout_.call_line(i)).sequence.load(std::memory_order_acquire));
  // Only shown to people: no data depends on it.
  calls.finished =
      at<ProgressLine>(theirs, layout_.progress()).finished.load(std::memory_order_relaxed);
  const std::uint32_t word =
      at<RankFlags>(theirs, layout_.flags()).receives.load(std::memory_order_relaxed);
  calls.receives = word != 0;
  if (calls.receives) calls.receives_from = receives_from(word);
  return calls;
}

// --- publishing ----------------------------------------------------------------------------------

bool ShmPublications::is_free(std::uint32_t slot) {
  if (slot >= slots_ && !populate_slots(slot)) return false;
  const bool free = tracker_.is_free(slot);
  if (!free) waits_for_readers_ = true;
  return free;
}

/// At least up to this one.
bool ShmPublications::populate_slots(std::uint32_t slot) {
  // Most groups use the first few numbers only, so those come one by one.
  const std::uint32_t next = (slot / layout_.banks + 1) * layout_.banks;
  const std::uint32_t to =
      std::min(layout_.all_slots(), slots_ < 4 * layout_.banks ? next : std::max(next, 2 * slots_));
  if (Status status =
          segment_.populate(layout_.slot(slots_), layout_.slot(to) - layout_.slot(slots_));
      !status.ok())
    return peers_.own_problem(status), false;
  slots_ = to;
  return true;
}

bool ShmPublications::would_take(std::size_t bytes, const std::byte* memory, bool lendable) const {
  return lendable && bytes >= kLendFrom && peers_.copy() != ShmCopy::staged &&
         peers_.copy() != ShmCopy::cma && Arena::of_process().find(memory, bytes).has_value();
}

Publications::Offered ShmPublications::offer(const Outgoing& out, const std::byte* source,
                                             bool lendable) {
  if (fits_line(out)) return put_in_line(out, source);
  if (!lendable || out.bytes < kLendFrom || peers_.copy() == ShmCopy::staged)
    return Offered::refused;
  const std::uint32_t slot = tracker_.slot_of(out.operation, out.number);
  if (!is_free(slot)) return Offered::busy;
  const auto lent =
      peers_.lend({source, out.bytes}, out.total, out.readers, {kDirectFrom, PeerTable::kNever});
  if (!lent) return Offered::refused;
  describe(line(slot), *lent);
  reveal(out, false);
  lent_.push_back(slot);
  return Offered::lent;
}

Publications::Offered ShmPublications::put_in_line(const Outgoing& out, const std::byte* source) {
  const std::uint32_t slot = tracker_.slot_of(out.operation, out.number);
  if (!is_free(slot)) return Offered::busy;
  copy_few(line(slot).before_word(out.bytes), source, out.bytes);
  reveal(out, false);
  return Offered::copied;
}

std::byte* ShmPublications::reserve(const Outgoing& out) {
  const std::uint32_t slot = tracker_.slot_of(out.operation, out.number);
  if (!is_free(slot)) return nullptr;
  if (fits_line(out)) return line(slot).before_word(out.bytes);
  extent_ = tracker_.find_extent(out.bytes);
  if (extent_ == SlotTracker::kNone) {
    waits_for_readers_ = true;
    return nullptr;
  }
  const std::size_t end = extent_ + out.bytes;
  if (end > populated_ && !populate_ring(end)) return nullptr;
  return out_ + layout_.ring() + extent_;
}

/// At least to `end`. In steps, as a communicator of small operations never needs the rest.
bool ShmPublications::populate_ring(std::size_t end) {
  constexpr std::size_t kFirst = std::size_t{128} << 10;
  const std::size_t to =
      std::min(layout_.ring_bytes, round_up(std::max({end, 2 * populated_, kFirst}), 4096));
  if (Status status = segment_.populate(layout_.ring() + populated_, to - populated_); !status.ok())
    return peers_.own_problem(status), false;
  populated_ = to;
  if (grown_ && segment_.returnable) grown_();
  return true;
}

/// Only this rank writes the ring, and readers that have posted their progress look at it no more:
/// until the next reserve() nobody does.
GivenBack ShmPublications::give_back() {
  if (populated_ == 0) return GivenBack::all;
  if (std::exchange(used_, tracker_.used()) != tracker_.used()) return GivenBack::in_use;
  if (!tracker_.is_unread()) return GivenBack::unread;
  if (segment_.give_back(layout_.ring(), populated_)) populated_ = 0;
  return GivenBack::all;
}

void ShmPublications::publish(const Outgoing& out) {
  const bool staged = !fits_line(out);
  if (staged)
    describe(line(tracker_.slot_of(out.operation, out.number)),
             {Descriptor::staged, 0, extent_, out.bytes, out.total});
  reveal(out, staged);
}

void ShmPublications::reveal(const Outgoing& out, bool staged) {
  line(tracker_.slot_of(out.operation, out.number))
      .word.store(word_of(out.operation, out.digest, layout_.round_of(out.number)),
                  std::memory_order_release);
  tracker_.record(out, staged);
  if (fits_line(out) && out.bytes > kLineBytes)  // the next call is often like this one
    fetch_for_writing(line(tracker_.slot_of(out.operation + 1, out.number)), out.bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // see ShmTransport::prepare_sleep()
  for (const ReaderOf& reader : out.readers)
    if (at<RankFlags>(shown_[reader.rank], layout_.flags())
            .sleeping.load(std::memory_order_relaxed) != kAwake)
      peers_.ring(peers_.of(reader.rank));
}

// --- reading -------------------------------------------------------------------------------------

const std::byte* ShmPublications::poll(const Incoming& in) {
  const Line& line =
      at<Line>(shown_[in.rank], layout_.line(tracker_.slot_of(in.operation, in.number)));
  // Pairs with the release in reveal(): once the word is seen, so are the line and what it points
  // to.
  const std::uint64_t word = word_of(in.operation, in.digest, layout_.round_of(in.number));
  for (std::uint32_t look = 1; line.word.load(std::memory_order_acquire) != word; ++look) {
    if (look >= in.poll_budget) return nullptr;
    relax();
  }
  if (fits_line(in)) return line.before_word(in.whole) + in.offset;
  const auto d = read_once<Descriptor>(line.data);
  Peer& peer = peers_.of(in.rank);
  peers_.begin_reads();
  const std::size_t whole = in.sized ? in.bytes : in.whole;
  return peers_.follow(peer, d, {in.offset, in.bytes, whole, in.sized, in.total, in.into},
                       {peer.out + layout_.ring(), layout_.ring_bytes});
}

// --- progress ------------------------------------------------------------------------------------

void ShmPublications::post(std::uint64_t operation, std::uint32_t lane, std::uint32_t tick) {
  at<ProgressLine>(out_, layout_.progress())
      .lane[lane]
      .store(progress_word(operation, tick), std::memory_order_release);
  peers_.tell_progress();
}

bool ShmPublications::finished(std::uint64_t operation, bool everyone) {
  at<ProgressLine>(out_, layout_.progress()).finished.store(operation, std::memory_order_release);
  peers_.tell_progress();
  peers_.end_reads();
  if (everyone) seen_.everyone_finished(operation - 1);
  return settled();
}

bool ShmPublications::settled() {
  while (!lent_.empty() && tracker_.is_free(lent_.back())) lent_.pop_back();
  if (!lent_.empty()) waits_for_readers_ = true;
  return lent_.empty();
}

bool ShmPublications::is_behind(Rank peer) {
  return std::any_of(lent_.begin(), lent_.end(),
                     [&](std::uint32_t slot) { return tracker_.is_read_by(slot, uindex(peer)); });
}

}  // namespace anyccl::shm
