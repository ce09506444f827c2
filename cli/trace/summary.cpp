#include "trace/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "trace/matches.hpp"

namespace anyccl::cli {
namespace {

struct Span {
  std::int64_t begin = 0, end = 0;
};

/// The time that is in at least one of them.
std::int64_t covered_ns(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::int64_t sum = 0, until = spans.empty() ? 0 : spans.front().begin;
  for (const Span& span : spans) {
    sum += std::max<std::int64_t>(0, span.end - std::max(until, span.begin));
    until = std::max(until, span.end);
  }
  return sum;
}

/// The time that is in one of each.
std::int64_t shared_ns(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return covered_ns(a) + covered_ns(b) - covered_ns(std::move(both));
}

/// Returns the lower one of two in the middle. Reorders `values`, which must not be empty.
std::int64_t median_of(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The operations of one rank in all its communicators.
struct RankSpans {
  std::string label;
  std::int64_t first = 0, last = 0;
  std::vector<Span> communicating;  // operations
  std::vector<Span> waiting;        // of a thread, for one of them, which may still be queued
  std::vector<Span> late;           // operations to which not all ranks had come
};

class Sums {
 public:
  /// Borrows `traces`; notes only which rank came last to each common call: summarize() adds up.
  explicit Sums(const std::vector<RankTrace>& traces) : traces_(traces) {
    for (const RankTrace& trace : traces) {
      all_here_.emplace_back(trace.calls.size());
      if (!places_.emplace(trace.communicator, trace.host, trace.pid).second)
        threads_.emplace(trace.host, trace.pid);
    }
    for (const CommonCall& common : common_calls_of(traces))
      if (common.is_complete) note(common);
  }
  TraceSummary summarize() {
    TraceSummary summary;
    for (std::size_t t = 0; t < traces_.size(); ++t) {
      summary.left_out += traces_[t].left_out;
      for (std::size_t c = 0; c < traces_[t].calls.size(); ++c)
        if (call_of(traces_, {t, c}).is_over()) add({t, c});
    }
    for (const auto& [place, spans] : spans_)
      summary.ranks.push_back(
          {spans.label, spans.last - spans.first, covered_ns(spans.communicating),
           shared_ns(spans.communicating, spans.waiting), shared_ns(spans.late, spans.waiting)});
    for (auto& [what, durations] : durations_) {
      OperationTimes times{what.first, what.second, durations.size(), 0, 0, for_late_[what]};
      for (const std::int64_t duration : durations) times.total += duration;
      times.median = median_of(durations);
      summary.operations.push_back(std::move(times));
    }
    std::stable_sort(summary.operations.begin(), summary.operations.end(),
                     [](const auto& a, const auto& b) { return a.total > b.total; });
    add_late(summary);
    return summary;
  }

 private:
  using What = std::pair<std::string, std::uint64_t>;

  void note(const CommonCall& common) {
    const Part last = last_of(traces_, common);
    const std::int64_t at = call_of(traces_, last).started_ns;
    std::vector<std::int64_t> others;
    for (const Part part : common.parts) {
      all_here_[part.trace][part.call] = at;
      if (part.trace != last.trace) others.push_back(call_of(traces_, part).started_ns);
    }
    lateness_[last.trace].push_back(at - median_of(others));
    ++common_calls_[traces_[last.trace].communicator];
  }
  void add(Part part) {
    const RankTrace& trace = traces_[part.trace];
    const TracedCall& call = call_of(traces_, part);
    const bool is_thread = threads_.contains({trace.host, trace.pid});
    RankSpans& spans = spans_[{trace.host, trace.pid, is_thread ? trace.rank : 0}];
    if (spans.communicating.empty()) {
      spans.label = fmt::format("rank {} (host {}, pid {})", trace.rank, trace.host, trace.pid);
      spans.first = call.issued_ns;
    }
    spans.first = std::min(spans.first, call.issued_ns);
    spans.last = std::max(spans.last, call.ended_ns);
    spans.communicating.push_back({call.started_ns, call.ended_ns});
    const std::int64_t all_here = std::min(all_here_[part.trace][part.call], call.ended_ns);
    if (call.awaited_ns != 0) spans.waiting.push_back({call.awaited_ns, call.ended_ns});
    if (all_here > call.started_ns) spans.late.push_back({call.started_ns, all_here});
    const What what{call.kind, call.bytes};
    durations_[what].push_back(call.ended_ns - call.started_ns);
    for_late_[what] += std::max<std::int64_t>(0, all_here - call.started_ns);
  }
  void add_late(TraceSummary& summary) {
    for (auto& [trace, times] : lateness_) {
      LateRank late{traces_[trace].title(),
                    traces_[trace].rank,
                    times.size(),
                    common_calls_[traces_[trace].communicator],
                    0,
                    median_of(times)};
      for (const std::int64_t time : times) late.total += time;
      summary.late.push_back(std::move(late));
    }
    std::stable_sort(summary.late.begin(), summary.late.end(),
                     [](const auto& a, const auto& b) { return a.total > b.total; });
  }

  const std::vector<RankTrace>& traces_;
  std::set<std::tuple<std::string, std::string, int>> places_;  // of communicators
  std::set<std::pair<std::string, int>> threads_;               // processes whose ranks are threads
  std::vector<std::vector<std::int64_t>>
      all_here_;  // by part: all ranks had begun it; 0: not known
  std::map<std::size_t, std::vector<std::int64_t>> lateness_;  // by trace
  std::map<std::string, std::size_t> common_calls_;            // by communicator
  std::map<std::tuple<std::string, int, int>, RankSpans> spans_;
  std::map<What, std::vector<std::int64_t>> durations_;
  std::map<What, std::int64_t> for_late_;
};

}  // namespace

double TraceSummary::exposed_share() const {
  std::int64_t exposed = 0, total = 0;
  for (const RankTimes& rank : ranks) {
    exposed += rank.exposed;
    total += rank.total;
  }
  return total == 0 ? 0 : static_cast<double>(exposed) / static_cast<double>(total);
}

double TraceSummary::late_share() const {
  std::int64_t exposed = 0, for_late = 0;
  for (const RankTimes& rank : ranks) {
    exposed += rank.exposed;
    for_late += rank.for_late;
  }
  return exposed == 0 ? 0 : static_cast<double>(for_late) / static_cast<double>(exposed);
}

TraceSummary summarize(const std::vector<RankTrace>& traces) {
  return Sums(traces).summarize();
}

}  // namespace anyccl::cli
