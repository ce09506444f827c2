#include "trace/traces.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "blame/files.hpp"
#include "json_number.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
/// In nanoseconds: a clock of four years, and real times of seventy. Sums and differences of longer
/// times might overflow.
constexpr std::int64_t kLongest = std::int64_t{1} << 57, kLatest = std::int64_t{1} << 61;

bool is_within(std::int64_t ns, std::int64_t most) {
  return ns >= -most && ns <= most;
}

/// Whether sums and differences of its times cannot overflow; their order is not looked at.
bool has_plausible_times(const RankTrace& trace) {
  return is_within(trace.time_ns, kLongest) && is_within(trace.real_offset_ns, kLatest) &&
         std::ranges::all_of(trace.calls, [](const TracedCall& c) {
           return is_within(c.issued_ns, kLongest) && is_within(c.started_ns, kLongest) &&
                  is_within(c.awaited_ns, kLongest) && is_within(c.ended_ns, kLongest);
         });
}

/// Errors: invalid_argument, when a rank cannot have written it.
Status check(const RankTrace& trace) {
  constexpr int kMostRanks = 1 << 20;
  if (trace.rank < 0 || trace.rank >= trace.size || trace.size > kMostRanks)
    return error(Code::invalid_argument, "it is no trace: there is no rank {} of {}", trace.rank,
                 trace.size);
  if (!has_plausible_times(trace))
    return error(Code::invalid_argument, "it is no trace: its times are years apart");
  std::set<std::uint64_t> sequences;
  for (const TracedCall& call : trace.calls) {
    if (call.sequence != 0 && !sequences.insert(call.sequence).second)
      return error(Code::invalid_argument, "it is no trace: it has operation {} twice",
                   call.sequence);
    if (call.track < 1 || std::cmp_greater(call.track, trace.calls.size()))
      return error(Code::invalid_argument, "it is no trace: its {} calls have no track {}",
                   trace.calls.size(), call.track);
  }
  return {};
}

template <typename T>
T whole(const Json& number) {
  return whole_number<T>(number);
}

/// `otherwise`, if there is none.
template <typename T>
T whole(const Json& object, const char* key, T otherwise = {}) {
  return object.contains(key) ? whole<T>(object.at(key)) : otherwise;
}

/// Throws Json::exception if a key that it needs is missing or has another type.
TracedCall read_call(const Json& event) {
  const Json& args = event.at("args");
  TracedCall call;
  call.sequence = whole<std::uint64_t>(args, "sequence");
  call.kind = args.at("kind");
  call.bytes = whole<std::uint64_t>(args.at("bytes"));
  call.root = whole(args, call.sequence == 0 ? "peer" : "root", -1);
  call.tag = whole<std::uint64_t>(args, "tag");
  call.issued_ns = whole<std::int64_t>(args.at("issued_ns"));
  call.started_ns = whole<std::int64_t>(args, "started_ns");
  call.awaited_ns = whole<std::int64_t>(args, "awaited_ns");
  call.ended_ns = whole<std::int64_t>(args, "ended_ns");
  call.stream = whole<int>(args, "stream");
  call.track = whole<int>(event.at("tid"));
  call.details = args.dump(-1, ' ', false, Json::error_handler_t::replace);
  return call;
}

/// Throws Json::exception if a key that it needs is missing or has another type.
RankTrace read(const Json& json) {
  const Json& writer = json.at("otherData");
  RankTrace trace;
  trace.communicator = writer.at("communicator");
  trace.name = writer.at("name");
  trace.host = writer.at("host");
  trace.pid = whole<int>(writer.at("pid"));
  trace.rank = whole<int>(writer.at("rank"));
  trace.size = whole<int>(writer.at("size"));
  trace.time_ns = whole<std::int64_t>(writer.at("time_ns"));
  trace.real_offset_ns = whole<std::int64_t>(writer.at("real_offset_ns"));
  trace.left_out = whole<std::uint64_t>(writer.at("left_out"));
  for (const Json& event : json.at("traceEvents"))
    if (event.at("ph") != "M") trace.calls.push_back(read_call(event));
  return trace;
}

}  // namespace

Result<RankTrace> parse_trace(const std::string& text) try {
  const Json json = Json::parse(text);
  if (!json.is_object() || !json.contains("otherData") ||
      whole<int>(json["otherData"], "anyccl_trace") != kFormat)
    return error(Code::invalid_argument, "it is no trace of a rank of this version of anyccl");
  RankTrace trace = read(json);
  ANYCCL_CHECK(check(trace));
  return trace;
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
  const auto twice = std::ranges::adjacent_find(traces, [](const RankTrace& a, const RankTrace& b) {
    return a.communicator == b.communicator && a.rank == b.rank;
  });
  if (twice != traces.end())
    return error(Code::invalid_argument, "the trace of rank {} of communicator {} is there twice",
                 twice->rank, twice->title());
  return traces;
}

}  // namespace anyccl::cli
