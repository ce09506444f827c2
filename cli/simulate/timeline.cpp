#include "simulate/timeline.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace anyccl::cli {

namespace {

using Json = nlohmann::ordered_json;

Json span(const char* name, const TimeSpan& time, std::uint32_t rank, Json arguments) {
  return {{"name", name},
          {"ph", "X"},
          {"pid", 0},
          {"tid", rank},
          {"ts", time.begin * 1e6},
          {"dur", (time.end - time.begin) * 1e6},
          {"args", std::move(arguments)}};
}

/// One end of the arrow of message `number`.
Json arrow_end(const char* phase, std::size_t number, std::uint32_t rank, double seconds) {
  return {{"name", "message"}, {"cat", "message"}, {"ph", phase}, {"bp", "e"},
          {"id", number},      {"pid", 0},         {"tid", rank}, {"ts", seconds * 1e6}};
}

}  // namespace

std::string timeline(const ReplayLog& log, std::uint32_t ranks, const std::string& title) {
  Json events = Json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 0}, {"args", {{"name", title}}}});
  for (std::uint32_t r = 0; r < ranks; ++r)
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 0},
                      {"tid", r},
                      {"args", {{"name", "rank " + std::to_string(r)}}}});
  std::vector<Json> timed;
  for (const StepSpan& wait : log.waits)
    timed.push_back(span("wait", wait, wait.rank, {{"step", wait.step}}));
  for (const StepSpan& add : log.additions)
    timed.push_back(span("add", add, add.rank, {{"step", add.step}}));
  for (std::size_t i = 0; i < log.messages.size(); ++i) {
    const MessageSpan& message = log.messages[i];
    // A send takes its rank no time, but an arrow needs something to begin at.
    timed.push_back(span("send", {message.begin, message.begin}, message.from,
                         {{"to", message.to}, {"bytes", message.bytes}}));
    timed.push_back(arrow_end("s", i, message.from, message.begin));
    timed.push_back(arrow_end("f", i, message.to, message.end));
  }
  std::stable_sort(timed.begin(), timed.end(), [](const Json& a, const Json& b) {
    return a["ts"].get<double>() < b["ts"].get<double>();
  });
  for (Json& event : timed) events.push_back(std::move(event));
  return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump();
}

}  // namespace anyccl::cli
