#include "framework/call/call_totals.hpp"

#include <algorithm>

#include "framework/call/recorder.hpp"

namespace anyccl {

/// Adds each call to the sums of those with the same collective, kind, algorithm and protocol.
void CallTotals::add(std::span<const RecordedCall> calls) {
  const auto is_like = [](const RecordedCall& a, const RecordedCall& b) {
    return a.algorithm == b.algorithm && a.count == b.count && a.collective == b.collective &&
           a.dtype == b.dtype && a.protocol == b.protocol && a.other == b.other;
  };
  while (!calls.empty()) {  // programs repeat themselves
    const RecordedCall& first = calls.front();
    std::uint64_t failed = 0, ticks = 0;
    std::size_t like = 0;
    for (; like < calls.size() && is_like(first, calls[like]); ++like) {
      const RecordedCall& call = calls[like];
      failed += call.state == RecordState::failed ? 1 : 0;
      if (call.ended > call.started && call.started != 0) ticks += call.ended - call.started;
    }
    Row& row = row_of(first);
    row.calls += like;
    row.failed += failed;
    row.bytes += like * first.count * bytes_of(first.dtype);
    row.ticks += ticks;
    calls = calls.subspan(like);
  }
}

CallTotals::Row& CallTotals::row_of(const RecordedCall& call) {
  const auto is_of_call = [&](const Row& row) {
    return row.algorithm == call.algorithm && row.collective == call.collective &&
           row.other == call.other && row.protocol == call.protocol;
  };
  if (last_ < rows_.size() && is_of_call(rows_[last_])) return rows_[last_];
  const auto found = std::find_if(rows_.begin(), rows_.end(), is_of_call);
  last_ = static_cast<std::size_t>(found - rows_.begin());
  if (found == rows_.end())
    rows_.push_back({call.algorithm, call.collective, call.other, call.protocol});
  return rows_[last_];
}

}  // namespace anyccl
