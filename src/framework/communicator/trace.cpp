#include "framework/communicator/trace.hpp"

#include <algorithm>

#include "framework/communicator/record_json.hpp"

namespace anyccl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json label(const char* what, int pid, std::size_t track, const std::string& text) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", track}, {"args", {{"name", text}}}};
}

double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

/// Spans of one track must not overlap. Collectives run one after the other; messages get as many
/// tracks as are open at a time.
class Tracks {
 public:
  static constexpr std::size_t kCollectives = 1;

  std::size_t of_message(std::int64_t begin, std::int64_t end) {
    const auto free = std::find_if(free_at_.begin(), free_at_.end(),
                                   [&](std::int64_t from) { return from <= begin; });
    const auto track = static_cast<std::size_t>(free - free_at_.begin());
    if (free == free_at_.end())
      free_at_.push_back(end);
    else
      *free = end;
    return kCollectives + 1 + track;
  }
  std::size_t last() const { return kCollectives + free_at_.size(); }

 private:
  std::vector<std::int64_t> free_at_;  // by track of messages
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
    event["tid"] = Tracks::kCollectives;
  } else {
    const std::int64_t begin = args["started_ns"];
    const std::int64_t end =
        std::max(begin + 1, args.value("ended_ns", now));  // else it has no area
    event["ph"] = "X";
    event["ts"] = microseconds(begin);
    event["dur"] = microseconds(end - begin);
    event["tid"] = is_collective ? Tracks::kCollectives : tracks.of_message(begin, end);
  }
  event["args"] = std::move(args);
  return event;
}

}  // namespace

std::string trace_text(const Membership& me, const Recorder& recorder) {
  Json writer{{"anyccl_trace", kFormat}};
  writer.update(writer_json(me));
  writer["left_out"] = recorder.first() - 1;
  const int pid = writer["pid"];
  std::string text = "{\"displayTimeUnit\": \"ns\",\n\"otherData\": " + line_of(writer) +
                     ",\n\"traceEvents\": [\n";
  Tracks tracks;
  const TickClock::Scale scale = recorder.clock().scale();
  for (std::uint64_t number = recorder.first(); number <= recorder.last(); ++number)
    text += line_of(event_of(record_json(number, recorder[number], scale), pid, writer["time_ns"],
                             tracks)) +
            ",\n";
  const std::string title = me.name.empty() ? me.id : me.name;
  for (std::size_t track = Tracks::kCollectives; track <= tracks.last(); ++track)
    text += line_of(label("thread_name", pid, track,
                          track == Tracks::kCollectives ? title : title + ", messages")) +
            ",\n";
  return text + line_of(label("process_name", pid, 0, me.names[uindex(me.rank)])) + "\n]}\n";
}

}  // namespace anyccl
