#include "framework/call/recorder.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace anyccl {

/// Pages of their own: the heap would write to them, and a communicator that is used little should
/// cost little.
Recorder::Recorder(std::size_t entries, bool is_traced) : is_traced_(is_traced) {
  if (entries == 0) return;
  entries = std::bit_ceil(entries);  // a division would cost as much as the rest of a record
  const std::size_t bytes = entries * sizeof(RecordedCall);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  ring_ = {static_cast<RecordedCall*>(memory), Unmap{bytes}};
  entries_ = entries;
  sum_at_ = entries + 1;
}

/// Adds the oldest records, done or not, to the sums before new ones take their places. Some at a
/// time, so that most calls find nothing to do: as many as there are up to the next multiple, so
/// that they do not cross the end of the ring.
void Recorder::sum_up() {
  const std::uint64_t most = std::min<std::uint64_t>(64, entries_), oldest = sum_at_ - entries_;
  const std::uint64_t count = most - oldest % most;
  sums_.add({&at(oldest), count});
  sum_at_ += count;
}

RecordedCalls Recorder::copy() const {
  RecordedCalls copy{first(), {}, clock_.scale()};
  copy.calls.reserve(last_ + 1 - first());
  for (std::uint64_t number = first(); number <= last_; ++number)
    copy.calls.push_back((*this)[number]);
  return copy;
}

CallTotals Recorder::totals() const {
  CallTotals totals = sums_;
  if (entries_ == 0) return totals;
  for (std::uint64_t number = sum_at_ - entries_; number <= last_; ++number)
    totals.add({&(*this)[number], 1});
  return totals;
}

void Recorder::Unmap::operator()(RecordedCall* ring) const {
  ::munmap(ring, bytes);
}

}  // namespace anyccl
