#include "trace/clocks.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "trace/matches.hpp"

namespace anyccl::cli {
namespace {

/// What is known of the clock of one host less that of another one.
struct Bounds {
  std::optional<std::int64_t> low, high;

  bool is_known() const { return low && high; }
  std::int64_t middle() const { return *low + (*high - *low) / 2; }
  std::int64_t width() const { return *high > *low ? *high - *low : *low - *high; }
};

class Differences {
 public:
  /// `later` cannot have been before `earlier`.
  void note(const std::string& earlier_host, std::int64_t earlier, const std::string& later_host,
            std::int64_t later) {
    if (earlier_host == later_host) return;
    Bounds& forward = bounds_[{later_host, earlier_host}];
    forward.high = std::min(later - earlier, forward.high.value_or(later - earlier));
    Bounds& back = bounds_[{earlier_host, later_host}];
    back.low = std::max(earlier - later, back.low.value_or(earlier - later));
  }
  /// The bounds of the clock of `host` less that of `other`.
  Bounds of(const std::string& host, const std::string& other) const {
    const auto found = bounds_.find({host, other});
    return found == bounds_.end() ? Bounds() : found->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, Bounds> bounds_;
};

bool needs_everyone(const TracedCall& call) {
  static constexpr std::string_view kKinds[] = {"all_reduce", "all_gather", "all_to_all",
                                                "reduce_scatter"};
  return call.kind == "barrier" ||
         (call.bytes > 0 &&
          std::find(std::begin(kKinds), std::end(kKinds), call.kind) != std::end(kKinds));
}

/// Pairs every rank with the first rank that has it, which is enough to connect all hosts. Notes
/// nothing of a call in which a rank may end before all have begun.
void note_common_call(const std::vector<RankTrace>& traces, const CommonCall& common,
                      Differences& differences) {
  if (!needs_everyone(call_of(traces, common.parts.front()))) return;
  const std::string& first_host = traces[common.parts.front().trace].host;
  const TracedCall& first = call_of(traces, common.parts.front());
  for (const Part part : common.parts) {
    const TracedCall& call = call_of(traces, part);
    if (first.ended_ns != 0)
      differences.note(traces[part.trace].host, call.started_ns, first_host, first.ended_ns);
    if (call.ended_ns != 0)
      differences.note(first_host, first.started_ns, traces[part.trace].host, call.ended_ns);
  }
}

/// Subtracts `ahead` from all times that are set, but keeps the real times that they mean.
void set_back(RankTrace& trace, std::int64_t ahead) {
  trace.time_ns -= ahead;
  trace.real_offset_ns += ahead;
  for (TracedCall& call : trace.calls)
    for (std::int64_t* const time :
         {&call.issued_ns, &call.started_ns, &call.awaited_ns, &call.ended_ns})
      if (*time != 0) *time -= ahead;
}

}  // namespace

std::vector<HostClock> align(std::vector<RankTrace>& traces) {
  Differences differences;
  for (const CommonCall& common : common_calls_of(traces))
    note_common_call(traces, common, differences);
  for (const Delivery& delivery : deliveries_of(traces))
    if (const TracedCall& recv = call_of(traces, delivery.recv); recv.ended_ns != 0)
      differences.note(traces[delivery.send.trace].host, call_of(traces, delivery.send).started_ns,
                       traces[delivery.recv.trace].host, recv.ended_ns);
  std::map<std::string, const RankTrace*> open;  // hosts whose clock is not known yet
  for (const RankTrace& trace : traces) open.emplace(trace.host, &trace);
  const std::int64_t first_offset = traces.front().real_offset_ns;
  std::vector<HostClock> clocks{{traces.front().host, 0, 0}};
  open.erase(traces.front().host);
  while (!open.empty()) {  // next comes the host that is known best from one that is there
    HostClock best{"", 0, std::numeric_limits<std::int64_t>::max()};
    for (const auto& [host, trace] : open)
      for (const HostClock& known : clocks)
        if (const Bounds bounds = differences.of(host, known.host);
            bounds.is_known() && known.error_ns >= 0)
          if (const std::int64_t error = known.error_ns + bounds.width() / 2; error < best.error_ns)
            best = {host, known.ahead_ns + bounds.middle(), error};
    if (best.host.empty())
      best = {open.begin()->first, first_offset - open.begin()->second->real_offset_ns, -1};
    open.erase(best.host);
    clocks.push_back(best);
  }
  std::map<std::string, std::int64_t> ahead;
  for (const HostClock& clock : clocks) ahead[clock.host] = clock.ahead_ns;
  for (RankTrace& trace : traces) set_back(trace, ahead[trace.host]);
  return clocks;
}

}  // namespace anyccl::cli
