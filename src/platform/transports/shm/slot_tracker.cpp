#include "platform/transports/shm/slot_tracker.hpp"

#include <algorithm>

namespace anyccl::shm {

bool PeerProgress::has_read(std::uint32_t rank, std::uint64_t operation, std::uint32_t lane,
                            std::uint32_t tick) {
  Seen& seen = peers_[rank];
  const auto known = [&] {
    return seen.finished >= operation || has_reached(seen.lane[lane], operation, tick);
  };
  if (known()) return true;
  // Pairs with the releases in post() and finished(): its reads came before.
  seen.finished = seen.theirs->finished.load(std::memory_order_acquire);
  seen.lane[lane] = seen.theirs->lane[lane].load(std::memory_order_acquire);
  return known();
}

SlotTracker::SlotTracker(const Layout& layout, PeerProgress& progress)
    : layout_(layout), progress_(progress), records_(std::size_t{layout.banks} * layout.slots) {}

bool SlotTracker::all_have_read(const Record& record) {
  for (const Reader& reader : record.readers)
    if (!progress_.has_read(reader.rank, record.operation, record.lane, reader.tick)) return false;
  return true;
}

bool SlotTracker::is_read_by(std::uint32_t slot, std::uint32_t rank) {
  const Record& record = records_[slot];
  return std::any_of(record.readers.begin(), record.readers.end(), [&](const Reader& reader) {
    return reader.rank == rank &&
           !progress_.has_read(rank, record.operation, record.lane, reader.tick);
  });
}

bool SlotTracker::is_released(const RingExtent& extent) {
  const Record& record = records_[extent.slot];
  // A slot that holds something later was free when it was reused.
  return record.operation != extent.operation || record.number != extent.number ||
         is_free(extent.slot);
}

bool SlotTracker::is_unread() {
  const auto at = [&](std::uint64_t i) -> const RingExtent& {
    return extents_[i % extents_.size()];
  };
  if (oldest_ != newest_ && !is_released(at(newest_ - 1))) return false;  // most likely
  while (oldest_ != newest_ && is_released(at(oldest_))) ++oldest_;
  return oldest_ == newest_;
}

std::size_t SlotTracker::find_extent(std::size_t bytes) {
  constexpr std::uint64_t kHot = 262144;  // measured: docs/adr/0075
  const std::uint64_t position = head_ % layout_.ring_bytes, room = layout_.ring_bytes - position;
  // Never across the end, and early back to the beginning, whose lines are in caches yet. Not while
  // anything is read: then all of the ring may be needed before somebody can go on.
  const bool from_begin = bytes > room || (position >= kHot && is_unread());
  found_ = from_begin ? head_ + room : head_;
  found_end_ = found_ + (bytes + 63) / 64 * 64;
  const auto oldest = [&]() -> const RingExtent& { return extents_[oldest_ % extents_.size()]; };
  while (oldest_ != newest_ && (oldest().begin + layout_.ring_bytes < found_end_ ||
                                newest_ - oldest_ == extents_.size())) {
    if (!is_released(oldest())) return kNone;
    ++oldest_;
  }
  return found_ % layout_.ring_bytes;
}

void SlotTracker::record(const Outgoing& out, bool staged) {
  const std::uint32_t slot = slot_of(out.operation, out.number);
  Record& record = records_[slot];
  record.operation = out.operation;
  record.number = out.number;
  record.lane = out.lane;
  if (record.readers.size() != out.readers.size()) record.readers.resize(out.readers.size());
  for (std::size_t i = 0; i < out.readers.size(); ++i)
    record.readers[i] = {out.readers[i].rank, out.readers[i].tick};
  if (!staged) return;
  if (extents_.empty()) extents_.resize(2 * records_.size());
  extents_[newest_++ % extents_.size()] = {found_, out.operation, slot, out.number};
  head_ = found_end_;
}

}  // namespace anyccl::shm
