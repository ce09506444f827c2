#pragma once
// A slot tracker decides when a publisher may overwrite a slot or an extent of its staging ring:
// when the readers of the last publication there have read it, as their progress in shared memory
// says. ShmPublications call it.

#include <array>
#include <span>
#include <vector>

#include "platform/transport/publications.hpp"
#include "platform/transports/shm/layout.hpp"

namespace anyccl::shm {

/// The peers' progress as far as it is known; looks at their memory only when that is not enough.
class PeerProgress {
 public:
  explicit PeerProgress(std::uint32_t ranks) : peers_(ranks) {}
  void add(std::uint32_t rank, const ProgressLine& theirs) { peers_[rank].theirs = &theirs; }

  bool has_read(std::uint32_t rank, std::uint64_t operation, std::uint32_t lane,
                std::uint32_t tick);
  /// Everyone is known to have finished `operation`.
  void everyone_finished(std::uint64_t operation) { everyone_ = operation; }
  std::uint64_t everyone_finished() const { return everyone_; }

 private:
  struct Seen {
    const ProgressLine* theirs = nullptr;
    std::uint64_t finished = 0;
    std::array<std::uint64_t, kMostLanes> lane = {};
  };
  std::vector<Seen> peers_;
  std::uint64_t everyone_ = 0;
};

/// Each slot remembers who reads its last publication, so any operations may follow each other.
class SlotTracker {
 public:
  SlotTracker(const Layout& layout, PeerProgress& progress);

  std::uint32_t slot_of(std::uint64_t operation, std::uint32_t number) const {
    return layout_.slot_of(operation, number);
  }
  bool is_free(std::uint32_t slot) {
    return records_[slot].operation <= progress_.everyone_finished() ||
           all_have_read(records_[slot]);
  }
  /// Offset in the ring of an extent of `bytes` that nobody reads any more, or kNone. Not taken
  /// until record() is called for it.
  std::size_t find_extent(std::size_t bytes);
  /// Whether `rank` still reads what the slot holds.
  bool is_read_by(std::uint32_t slot, std::uint32_t rank);
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// Whether nobody reads any of the ring.
  bool is_unread();
  /// Grows with all that is put into the ring.
  std::uint64_t used() const { return head_; }

  /// `out` has been put into its slot; `staged`: and into the extent found last.
  void record(const Outgoing& out, bool staged);

 private:
  struct Reader {
    std::uint32_t rank, tick;
  };
  struct Record {
    std::uint64_t operation = 0;  // 0: never used
    std::uint32_t number = 0, lane = 0;
    std::vector<Reader> readers;
  };
  struct RingExtent {
    std::uint64_t begin = 0, operation = 0;
    std::uint32_t slot = 0, number = 0;
  };
  bool all_have_read(const Record& record);
  bool is_released(const RingExtent& extent);

  const Layout layout_;
  PeerProgress& progress_;
  std::vector<Record> records_;
  // Circular, in the order of their positions; made when the first one is.
  std::vector<RingExtent> extents_;
  std::uint64_t oldest_ = 0, newest_ = 0;  // of extents_
  std::uint64_t head_ = 0, found_ = 0,
                found_end_ = 0;  // positions; the ring is them modulo its size
};

}  // namespace anyccl::shm
