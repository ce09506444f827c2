#include "platform/transport/segment/ledger.hpp"

#include <algorithm>

namespace anyccl {

bool PeerProgress::has_read(std::uint32_t rank, std::uint64_t operation, std::uint32_t lane,
                            std::uint32_t tick) {
  Seen& seen = peers_[rank];
  const std::uint64_t wanted = operation << 24 | tick;
  if (seen.finished >= operation || seen.lane[lane] >= wanted) return true;
  // Pairs with the releases in post() and finished(): its reads came before.
  seen.finished = seen.theirs->finished.load(std::memory_order_acquire);
  seen.lane[lane] = seen.theirs->lane[lane].load(std::memory_order_acquire);
  return seen.finished >= operation || seen.lane[lane] >= wanted;
}

Ledger::Ledger(const Layout& layout, PeerProgress& progress)
    : layout_(layout),
      progress_(progress),
      records_(std::size_t{layout.banks} * layout.slots),
      stretches_(2 * records_.size()) {
  for (Record& r : records_) r.readers.reserve(layout.ranks);
}

bool Ledger::all_have_read(const Record& record) {
  for (const Reader& reader : record.readers)
    if (!progress_.has_read(reader.rank, record.operation, record.lane, reader.tick)) return false;
  return true;
}

bool Ledger::is_read_by(std::uint32_t slot, std::uint32_t rank) {
  const Record& record = records_[slot];
  return std::any_of(record.readers.begin(), record.readers.end(), [&](const Reader& reader) {
    return reader.rank == rank &&
           !progress_.has_read(rank, record.operation, record.lane, reader.tick);
  });
}

bool Ledger::is_released(const Stretch& stretch) {
  const Record& record = records_[stretch.slot];
  // A slot that holds something later was free when it was reused.
  return record.operation != stretch.operation || record.number != stretch.number ||
         is_free(stretch.slot);
}

std::size_t Ledger::find_stretch(std::size_t bytes) {
  const std::uint64_t room = layout_.ring_bytes - head_ % layout_.ring_bytes;
  found_ = bytes > room ? head_ + room : head_;  // never across the end
  found_end_ = found_ + (bytes + 63) / 64 * 64;
  const auto oldest = [&]() -> const Stretch& { return stretches_[oldest_ % stretches_.size()]; };
  while (oldest_ != newest_ && (oldest().begin + layout_.ring_bytes < found_end_ ||
                                newest_ - oldest_ == stretches_.size())) {
    if (!is_released(oldest())) return kNone;
    ++oldest_;
  }
  return found_ % layout_.ring_bytes;
}

void Ledger::record(const Outgoing& out, bool staged) {
  const std::uint32_t slot = slot_of(out.operation, out.number);
  Record& record = records_[slot];
  record.operation = out.operation;
  record.number = out.number;
  record.lane = out.lane;
  if (record.readers.size() != out.readers.size()) record.readers.resize(out.readers.size());
  for (std::size_t i = 0; i < out.readers.size(); ++i)
    record.readers[i] = {out.readers[i].rank, out.readers[i].tick};
  if (!staged) return;
  stretches_[newest_++ % stretches_.size()] = {found_, out.operation, slot, out.number};
  head_ = found_end_;
}

}  // namespace anyccl
