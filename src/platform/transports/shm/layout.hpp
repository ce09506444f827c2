#pragma once
// The layout of the memory that one rank shows its local peers. Every line has one writer, the
// owner; every sequence only grows; publishing is plain stores and then one release store.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platform/reduce/copy.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl::shm {

inline constexpr std::uint32_t kMailboxSlots = 8;  ///< Fragments of messages on the way, per pair.
inline constexpr std::size_t kFragmentBytes = 32768;  ///< Bytes of a point-to-point fragment.

/// The last line of a slot: ends with the word that says whose publication the slot holds. Before
/// the word lie the bytes themselves, right up to it and over as many lines as they need, if they
/// fit the slot; else a Descriptor. Pairs: word.store(release) by the publisher, load(acquire) by
/// readers, so who sees the word also sees the bytes.
struct alignas(64) Line {
  std::byte data[kLineBytes];
  std::atomic<std::uint64_t> word;

  /// Where `bytes` bytes begin that end at the word, aligned to 8. They may begin in earlier lines.
  const std::byte* before_word(std::size_t bytes) const {
    return reinterpret_cast<const std::byte*>(this) + kLineBytes - (bytes + 7) / 8 * 8;
  }
  std::byte* before_word(std::size_t bytes) {
    return const_cast<std::byte*>(std::as_const(*this).before_word(bytes));
  }
};
static_assert(sizeof(Line) == 64);

/// Where the bytes of a larger publication lie.
struct Descriptor {
  enum Kind : std::uint32_t { staged, window, memory };
  std::uint32_t kind;
  std::uint32_t number;    ///< The window's, as its owner announced it.
  std::uint64_t position;  ///< In the staging ring, in the fragments of the mailbox, in the window,
                           ///< or (memory) its address in the process of its owner.
  std::uint64_t bytes;
  std::uint64_t total;  ///< Bytes of all that goes to this reader, if the publication is sized.
};
static_assert(sizeof(Descriptor) <= kLineBytes);

/// Progress of the owner, polled by who wants to reuse a slot the owner reads.
struct alignas(128) ProgressLine {
  std::atomic<std::uint64_t> finished;          ///< Last finished operation.
  std::atomic<std::uint64_t> lane[kMostLanes];  ///< progress_word() of what was read last.
};

/// That everything up to `tick` of `operation` has been read in a lane. 32 bits of each, which wrap
/// around: a lane has more than 2^24 ticks if a large vector is sent in publications of one line.
constexpr std::uint64_t progress_word(std::uint64_t operation, std::uint32_t tick) {
  return operation << 32 | tick;
}
static_assert(sizeof(ReaderOf::tick) == 4 && sizeof(ProgressLine::lane[0]) == 8,
              "half of a progress word is the operation, the other half the tick");

/// Whether a rank whose lane shows `word` has read up to `tick` of `operation`; false if `word` is
/// of another operation, even of a later one. Ticks are compared by their distance. It is far below
/// 2^31: a publisher is at most its slots ahead of a reader, and a reader at most one tile ahead of
/// what it needs from a publisher.
constexpr bool has_reached(std::uint64_t word, std::uint64_t operation, std::uint32_t tick) {
  return word >> 32 == (operation & 0xFFFFFFFFU) &&
         static_cast<std::uint32_t>(word) - tick < 1U << 31;
}

/// One call record, as words that may be read while they are written: `sequence` is zeroed first
/// and set last, all with release, and read first and last, all with acquire.
struct alignas(64) CallLine {
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> what, count, plan, history;
};

inline void write_record(CallLine& line, const CallRecord& call) {
  std::uint64_t what = 0;
  std::memcpy(&what, &call.collective, sizeof what);  // collective to root
  line.sequence.store(0, std::memory_order_release);
  line.what.store(what, std::memory_order_release);
  line.count.store(call.count, std::memory_order_release);
  line.plan.store(call.plan, std::memory_order_release);
  line.history.store(call.history, std::memory_order_release);
  line.sequence.store(call.sequence, std::memory_order_release);  // pairs with read_record()
}
/// False if the line holds another call, or changes while it is read: `record` may be overwritten
/// then.
inline bool read_record(const CallLine& line, std::uint64_t sequence, CallRecord& record) {
  if (line.sequence.load(std::memory_order_acquire) != sequence) return false;
  const std::uint64_t what = line.what.load(std::memory_order_acquire);
  std::memcpy(&record.collective, &what, sizeof what);
  record.sequence = sequence;
  record.count = line.count.load(std::memory_order_acquire);
  record.plan = line.plan.load(std::memory_order_acquire);
  record.history = line.history.load(std::memory_order_acquire);
  return line.sequence.load(std::memory_order_acquire) == sequence;
}

/// Where a rank sleeps, if it does.
enum Asleep : std::uint32_t {
  kAwake = 0,
  kOnDoorbell = 1,  ///< A futex.
  kOnSockets = 2,   ///< Those of the links to its peers are among them.
};

struct alignas(128) RankFlags {
  std::atomic<std::uint32_t> sleeping;  ///< Asleep.
  std::atomic<std::uint32_t> left;      ///< The owner said goodbye.
  std::atomic<std::uint32_t> notices;   ///< How many messages about windows it has sent.
  std::atomic<std::uint32_t> fenced;    ///< The owner has joined the fences; set once.
  std::atomic<std::uint32_t> receives;  ///< 0, or the owner waits for a message: receives_word().
  /// reads_word() as long as the owner may read the blocks of peers; then 0.
  std::atomic<std::uint64_t> reads;
};

/// Not 0, and another one in each communicator.
constexpr std::uint64_t reads_word(std::uint64_t key) {
  return key | 1;
}

/// Says that the owner waits for a message of any rank, or of rank `from`.
constexpr std::uint32_t receives_word(Rank from) {
  return from == kAnySource ? 1 : uindex(from) + 2;
}
constexpr Rank receives_from(std::uint32_t word) {
  return word == 1 ? kAnySource : Rank{static_cast<std::int32_t>(word - 2)};
}

/// How much the owner has read of one peer's point-to-point fragments.
struct alignas(64) MailboxProgress {
  std::atomic<std::uint64_t> consumed;
};

/// Memory that peers may write: nothing but two words that wake.
struct alignas(128) DoorbellPage {
  std::atomic<std::uint32_t> doorbell;         ///< The futex word that wakes the owner.
  std::atomic<std::uint32_t> progress_wanted;  ///< A peer sleeps until the owner posts progress.
};

/// Offsets in the memory of one rank; equal on all ranks of a communicator.
struct Layout {
  std::uint32_t ranks = 0;
  std::uint32_t banks = 0, slots = 0;  ///< Powers of two.
  std::uint32_t slot_lines = 1;        ///< Lines of a slot.
  std::size_t ring_bytes = 0;

  /// Where publication `number` of an operation lies, and how often its slot came round before it.
  /// The slots of a number lie side by side, as most operations need the first few only.
  std::uint32_t slot_of(std::uint64_t operation, std::uint32_t number) const {
    return (number & (slots - 1)) * banks + (static_cast<std::uint32_t>(operation) & (banks - 1));
  }
  std::uint32_t round_of(std::uint32_t number) const { return number >> std::countr_zero(slots); }

  std::size_t flags() const { return 0; }
  std::size_t progress() const { return sizeof(RankFlags); }
  std::size_t call_line(std::uint64_t sequence) const {
    return progress() + sizeof(ProgressLine) + sequence % kCallHistory * sizeof(CallLine);
  }
  std::size_t slot(std::size_t slot) const {
    return call_line(0) + kCallHistory * sizeof(CallLine) + slot * slot_lines * sizeof(Line);
  }
  std::uint32_t all_slots() const { return banks * slots; }
  std::size_t line(std::size_t slot) const { return this->slot(slot + 1) - sizeof(Line); }
  std::size_t mailbox_line(std::uint32_t reader, std::uint64_t fragment) const {
    return line(mailbox_slot(reader) + fragment % kMailboxSlots);
  }
  std::size_t mailbox_slot(std::uint32_t reader) const {
    return all_slots() + std::size_t{reader} * kMailboxSlots;
  }
  std::size_t mailbox_progress(std::uint32_t source) const {
    return slot(mailbox_slot(ranks)) + source * sizeof(MailboxProgress);
  }
  /// Slots whose memory is populated at creation, with everything but slots: the first of each
  /// bank. That of the others is when they are first used.
  std::uint32_t first_slots() const { return banks; }
  std::size_t fixed_bytes() const { return (mailbox_progress(ranks) + 4095) / 4096 * 4096; }
  /// In the middle of a page: most buffers of callers begin near the beginning of one, and copies
  /// between places that are a little apart within a page are slow (docs/adr/0068).
  std::size_t ring() const { return fixed_bytes() + 2048; }
  std::size_t mailbox_bytes() const { return kMailboxSlots * kFragmentBytes; }
  std::size_t fragments(std::uint32_t reader) const {
    return ring() + ring_bytes + reader * mailbox_bytes();
  }
  /// Whole pages.
  std::size_t bytes() const { return (fragments(ranks) + 4095) / 4096 * 4096; }
};

template <typename T>
T& at(std::byte* base, std::size_t offset) {
  return *reinterpret_cast<T*>(base + offset);
}
template <typename T>
const T& at(const std::byte* base, std::size_t offset) {
  return *reinterpret_cast<const T*>(base + offset);
}

/// Copies up to 16 bytes without a call, and more with one.
inline void copy_few(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto ends = [&]<typename T>(T front) {  // both loaded before either is stored
    T back;
    std::memcpy(&front, from, sizeof front);
    std::memcpy(&back, from + bytes - sizeof back, sizeof back);
    std::memcpy(to, &front, sizeof front);
    std::memcpy(to + bytes - sizeof back, &back, sizeof back);
  };
  if (bytes > 16)
    copy_bytes(to, from, bytes);
  else if (bytes >= 8)
    ends(std::uint64_t{});
  else if (bytes >= 4)
    ends(std::uint32_t{});
  else
    for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

}  // namespace anyccl::shm
