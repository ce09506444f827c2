#include "trace/traces.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.hpp"
#include "blame/files.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

TracedCall read_call(const Json& event) {
  const Json& args = event.at("args");
  TracedCall call;
  call.sequence = args.value("sequence", std::uint64_t{0});
  call.kind = args.at("kind");
  call.bytes = args.at("bytes");
  call.root = args.value(call.sequence == 0 ? "peer" : "root", -1);
  call.tag = args.value("tag", std::uint64_t{0});
  call.issued_ns = args.at("issued_ns");
  call.started_ns = args.value("started_ns", std::int64_t{0});
  call.awaited_ns = args.value("awaited_ns", std::int64_t{0});
  call.ended_ns = args.value("ended_ns", std::int64_t{0});
  call.stream = args.value("stream", 0);
  call.track = event.at("tid");
  call.details = args.dump(-1, ' ', false, Json::error_handler_t::replace);
  return call;
}

RankTrace read(const Json& json) {
  const Json& writer = json.at("otherData");
  RankTrace trace;
  trace.communicator = writer.at("communicator");
  trace.name = writer.at("name");
  trace.host = writer.at("host");
  trace.pid = writer.at("pid");
  trace.rank = writer.at("rank");
  trace.size = writer.at("size");
  trace.time_ns = writer.at("time_ns");
  trace.real_offset_ns = writer.at("real_offset_ns");
  trace.left_out = writer.at("left_out");
  for (const Json& event : json.at("traceEvents"))
    if (event.at("ph") != "M") trace.calls.push_back(read_call(event));
  return trace;
}

}  // namespace

Result<RankTrace> parse_trace(const std::string& text) try {
  const Json json = Json::parse(text);
  if (!json.is_object() || !json.contains("otherData") ||
      json["otherData"].value("anyccl_trace", 0) != kFormat)
    return error(Code::invalid_argument, "it is no trace of a rank of this version of anyccl");
  return read(json);
} catch (const Json::exception& problem) {
  return error(Code::invalid_argument, "it is no trace: {}", problem.what());
}

Result<std::vector<RankTrace>> read_traces(const std::vector<std::string>& paths) {
  std::vector<RankTrace> traces;
  ANYCCL_CHECK(read_each(paths, "trace-", [&](const std::string& text) -> Status {
    ANYCCL_TRY(RankTrace trace, parse_trace(text));
    traces.push_back(std::move(trace));
    return {};
  }));
  // Larger communicators first: ranks of a process are called by that of the first.
  std::sort(traces.begin(), traces.end(), [](const RankTrace& a, const RankTrace& b) {
    return std::tuple(-a.size, a.communicator, a.rank) <
           std::tuple(-b.size, b.communicator, b.rank);
  });
  return traces;
}

}  // namespace anyccl::cli
