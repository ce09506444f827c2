#include "framework/records/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/records/record_json.hpp"

namespace anyccl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kTraceFormat = 1;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json label(const char* what, int pid, std::size_t track, const std::string& text) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", track}, {"args", {{"name", text}}}};
}

double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

/// Spans of one track must not overlap. Collectives run one after the other, and each stream has a
/// track of its own for those that it has queued, and for its messages, which are moments; other
/// messages get as many tracks as are open at a time.
class Tracks {
 public:
  /// Numbers of tracks, from 1. Stream 0: what no stream has queued.
  std::size_t of_stream(int stream) {
    const std::string what = stream == 0 ? "" : fmt::format(", stream {}", stream);
    for (std::size_t i = 0; i < tracks_.size(); ++i)
      if (tracks_[i].name == what) return i + 1;
    return add({what, 0});
  }
  std::size_t of_message(std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < tracks_.size(); ++i)
      if (tracks_[i].name == kMessages && tracks_[i].free_at <= begin) {
        tracks_[i].free_at = end;
        return i + 1;
      }
    return add({kMessages, end});
  }
  /// What the titles of the tracks end in.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Track& track : tracks_) names.push_back(track.name);
    return names;
  }

 private:
  static constexpr const char* kMessages = ", messages";
  struct Track {
    std::string name;
    std::int64_t free_at;  // of messages
  };
  /// Appends it, even if there is one of this name; returns its number.
  std::size_t add(Track track) {
    tracks_.push_back(std::move(track));
    return tracks_.size();
  }

  std::vector<Track> tracks_;
};

/// `args`: of record_json(). An operation that has not begun is a moment, one that has not ended
/// lasts until `now`.
Json event_of(Json args, int pid, std::int64_t now, Tracks& tracks) {
  Json event{{"name", args["kind"]}, {"pid", pid}};
  const bool is_collective = args.contains("sequence");
  event["cat"] = is_collective ? "collective" : "message";
  if (!args.contains("started_ns")) {
    event["ph"] = "i";
    event["ts"] = microseconds(args["issued_ns"]);
    event["tid"] = tracks.of_stream(args.value("stream", 0));
  } else {
    const std::int64_t begin = args["started_ns"];
    const std::int64_t end =
        std::max(begin + 1, args.value("ended_ns", now));  // else it has no area
    event["ph"] = "X";
    event["ts"] = microseconds(begin);
    event["dur"] = microseconds(end - begin);
    event["tid"] =
        is_collective ? tracks.of_stream(args.value("stream", 0)) : tracks.of_message(begin, end);
  }
  event["args"] = std::move(args);
  return event;
}

}  // namespace

std::string trace_text(const Membership& me, const RecordedCalls& calls) {
  Json writer{{"anyccl_trace", kTraceFormat}};
  writer.update(writer_json(me, TickClock::monotonic_ns()));
  writer["left_out"] = calls.first - 1;
  const int pid = writer["pid"];
  std::string text = "{\"displayTimeUnit\": \"ns\",\n\"otherData\": " + line_of(writer) +
                     ",\n\"traceEvents\": [\n";
  Tracks tracks;
  std::uint64_t number = calls.first;
  for (const RecordedCall& call : calls.calls)
    text += line_of(event_of(record_json(number++, call, calls.scale), pid, writer["time_ns"],
                             tracks)) +
            ",\n";
  const std::string title = me.name.empty() ? me.id : me.name;
  std::size_t number_of_track = 0;
  for (const std::string& what : tracks.names())
    text += line_of(label("thread_name", pid, ++number_of_track, title + what)) + ",\n";
  return text + line_of(label("process_name", pid, 0, me.names[uindex(me.rank)])) + "\n]}\n";
}

}  // namespace anyccl
