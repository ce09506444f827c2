#include "trace/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "trace/matches.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

/// Where a rank's operations are drawn: processes of several hosts may have one pid, and a process
/// may have several ranks, as threads.
class Layout {
 public:
  explicit Layout(const std::vector<RankTrace>& traces) {
    std::map<std::pair<std::string, int>, int> processes;
    for (const RankTrace& trace : traces) {
      const auto next = static_cast<int>(processes.size()) + 1;
      process_.push_back(processes.emplace(std::pair(trace.host, trace.pid), next).first->second);
      int tracks = 0;
      for (const TracedCall& call : trace.calls) tracks = std::max(tracks, call.track);
      before_.push_back(tracks_[process_.back()]);
      tracks_[process_.back()] += tracks;
    }
  }
  int process(std::size_t trace) const { return process_[trace]; }
  int track(std::size_t trace, int own) const { return before_[trace] + own; }

 private:
  std::vector<int> process_, before_;
  std::map<int, int> tracks_;  // by process
};

class Timeline {
 public:
  explicit Timeline(const std::vector<RankTrace>& traces) : traces_(traces), layout_(traces) {
    std::optional<std::int64_t> start;
    for (const RankTrace& trace : traces)
      for (const TracedCall& call : trace.calls)
        start = std::min(start.value_or(call.issued_ns), call.issued_ns);
    start_ns_ = start.value_or(traces.front().time_ns);  // they have no calls
    for (const CommonCall& common : common_calls_of(traces)) note(common);
  }

  void add_all() {
    add_names();
    for (std::size_t t = 0; t < traces_.size(); ++t)
      for (std::size_t c = 0; c < traces_[t].calls.size(); ++c) add({t, c});
    for (const CommonCall& common : common_calls_of(traces_)) {
      const Part last = last_of(traces_, common);
      for (const Part part : common.parts)
        if (part.trace != last.trace) add_arrow("waits for", last, part);
    }
    for (const Delivery& delivery : deliveries_of(traces_))
      add_arrow("message", delivery.send, delivery.recv);
  }
  std::int64_t start_ns() const { return start_ns_; }
  const std::string& events() const { return events_; }

 private:
  /// Keeps the part that began last, for each part of another rank; add() shows it.
  void note(const CommonCall& common) {
    const Part last = last_of(traces_, common);
    for (const Part part : common.parts)
      if (part.trace != last.trace) last_[{part.trace, part.call}] = last;
  }
  static std::string kind_of_track(const TracedCall& call) {
    if (call.stream != 0) return fmt::format(", stream {}", call.stream);
    return call.sequence == 0 && call.started_ns != 0 ? ", messages" : "";
  }
  void append(const Json& event) {
    events_ +=
        (events_.empty() ? "" : ",\n") + event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void add_name(const char* what, int process, int track, const std::string& text) {
    append(Json{
        {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", text}}}});
  }
  void add_names() {
    std::set<std::pair<int, int>> named;
    for (std::size_t t = 0; t < traces_.size(); ++t) {
      const RankTrace& trace = traces_[t];
      const int process = layout_.process(t);
      if (named.emplace(process, 0).second)
        add_name("process_name", process, 0,
                 fmt::format("rank {} (host {}, pid {})", trace.rank, trace.host, trace.pid));
      for (const TracedCall& call : trace.calls)
        if (const int track = layout_.track(t, call.track); named.emplace(process, track).second)
          add_name("thread_name", process, track,
                   fmt::format("{}, rank {}{}", trace.title(), trace.rank, kind_of_track(call)));
    }
  }
  /// An event with its place.
  Json event_at(const char* phase, Part part, std::int64_t at) const {
    return {{"ph", phase},
            {"pid", layout_.process(part.trace)},
            {"tid", layout_.track(part.trace, call_of(traces_, part).track)},
            {"ts", microseconds(at - start_ns_)}};
  }
  /// Adds a span, until its trace was written if it has not ended. One that has not begun is an
  /// instant.
  void add(Part part) {
    const TracedCall& call = call_of(traces_, part);
    const bool has_begun = call.started_ns != 0;
    const std::int64_t end = call.ended_ns != 0 ? call.ended_ns : traces_[part.trace].time_ns;
    Json event =
        event_at(has_begun ? "X" : "i", part, has_begun ? call.started_ns : call.issued_ns);
    event["name"] = call.kind;
    event["cat"] = call.sequence == 0 ? "message" : "collective";
    Json& details = event["args"] = Json::parse(call.details);
    for (const char* time : {"issued_ns", "started_ns", "awaited_ns", "ended_ns"})
      details.erase(time);  // on a clock that nothing else here shows
    if (has_begun) {
      event["dur"] = microseconds(std::max<std::int64_t>(1, end - call.started_ns));
      details["queued_us"] = microseconds(call.started_ns - call.issued_ns);
    }
    if (const auto last = last_.find({part.trace, part.call}); last != last_.end()) {
      details["waits_for"] = traces_[last->second.trace].rank;
      details["came_earlier_by_us"] =
          microseconds(call_of(traces_, last->second).started_ns - call.started_ns);
    }
    append(event);
  }
  /// Each end within its span, where viewers look for it.
  void add_arrow(const char* what, Part from, Part to) {
    const TracedCall& receiver = call_of(traces_, to);
    const std::int64_t begin = call_of(traces_, from).started_ns;
    const std::int64_t last =
        receiver.ended_ns != 0 ? receiver.ended_ns : traces_[to.trace].time_ns;
    ++arrows_;
    for (const bool is_end : {false, true}) {
      Json event = is_end ? event_at("f", to, std::max(receiver.started_ns, std::min(begin, last)))
                          : event_at("s", from, begin);
      event["name"] = event["cat"] = what;
      event["id"] = arrows_;
      if (is_end) event["bp"] = "e";
      append(event);
    }
  }

  const std::vector<RankTrace>& traces_;
  Layout layout_;
  std::map<std::pair<std::size_t, std::size_t>, Part> last_;  // by trace and call
  std::int64_t start_ns_ = 0;
  std::uint64_t arrows_ = 0;
  std::string events_;
};

}  // namespace

std::string merged_timeline(const std::vector<RankTrace>& traces,
                            const std::vector<HostClock>& clocks) {
  Timeline timeline(traces);
  timeline.add_all();
  Json about{{"start_real_ns", timeline.start_ns() + traces.front().real_offset_ns}};
  for (const HostClock& clock : clocks)
    about["clocks"][clock.host] = {{"ahead_ns", clock.ahead_ns}, {"error_ns", clock.error_ns}};
  return "{\"displayTimeUnit\": \"ns\",\n\"otherData\": " +
         about.dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n\"traceEvents\": [\n" +
         timeline.events() + "\n]}\n";
}

}  // namespace anyccl::cli
