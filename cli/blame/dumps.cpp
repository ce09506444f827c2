#include "blame/dumps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "blame/files.hpp"
#include "json_number.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
/// In nanoseconds: a clock of four years, and real times of seventy, so that no sum overflows.
constexpr std::int64_t kLongest = std::int64_t{1} << 57, kLatest = std::int64_t{1} << 61;

/// A time of at most so many nanoseconds, before or after 0. Throws Json::type_error otherwise.
std::int64_t time_of(const Json& number, std::int64_t most) {
  const auto ns = whole_number<std::int64_t>(number);
  if (ns < -most || ns > most)
    throw Json::type_error::create(302, "a time is needed that a clock can have", &number);
  return ns;
}

std::string describe_call(const Json& call) {
  const std::string kind = call.at("kind");
  std::string text = kind;
  if (kind == "barrier") return text;
  if (!kind.ends_with("_v"))
    text += fmt::format(" of {}", whole_number<std::uint64_t>(call.at("count")));
  text += fmt::format(" {}", call.at("type").get<std::string>());
  if (call.contains("op")) text += ", " + call.at("op").get<std::string>();
  if (call.contains("root")) text += fmt::format(", root {}", whole_number<int>(call.at("root")));
  if (call.contains("peer"))
    text += fmt::format(
        " {} rank {}, tag {}", kind == "send" || kind == "put" || kind == "signal" ? "to" : "from",
        whole_number<int>(call.at("peer")), whole_number<std::uint32_t>(call.at("tag")));
  if (call.contains("parts"))
    text += fmt::format(", {} calls as one", whole_number<int>(call.at("parts")));
  return text;
}

DumpedCall read_call(const Json& json, std::int64_t offset) {
  const auto time = [&](const char* field) {
    return json.contains(field) ? time_of(json.at(field), kLongest) + offset : 0;
  };
  const std::uint64_t sequence =
      json.contains("sequence") ? whole_number<std::uint64_t>(json.at("sequence")) : 0;
  return {whole_number<std::uint64_t>(json.at("number")),
          sequence,
          json.at("kind"),
          json.at("state"),
          describe_call(json),
          time("issued_ns"),
          time("ended_ns")};
}

DumpedWait read_wait(const Json& json) {
  DumpedWait wait{whole_number<std::uint64_t>(json.at("number")),
                  whole_number<std::uint64_t>(json.at("sequence")),
                  json.at("what"),
                  {}};
  for (const Json& rank : json.at("ranks").get_ref<const Json::array_t&>())
    wait.ranks.push_back(whole_number<int>(rank));
  return wait;
}

/// "host n7, pid 12" of "rank 2 (host n7, pid 12)"
std::string process_in(const std::string& name) {
  const std::size_t begin = name.find('('), end = name.rfind(')');
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? ""
             : name.substr(begin + 1, end - begin - 1);
}

/// Reads one rank's object, and adds its `real_offset_ns` to all times. Throws Json::exception for
/// a field that is missing or of another type.
RankDump read(const Json& json) {
  RankDump dump;
  const std::int64_t offset = time_of(json.at("real_offset_ns"), kLatest);
  dump.communicator = json.at("communicator");
  dump.name = json.at("name");
  dump.process = fmt::format("host {}, pid {}", json.at("host").get<std::string>(),
                             whole_number<int>(json.at("pid")));
  dump.reason = json.at("reason");
  dump.failure = json.value("failure", "");
  dump.aborted = json.value("aborted", false);
  dump.rank = whole_number<int>(json.at("rank"));
  dump.size = whole_number<int>(json.at("size"));
  dump.sequence = whole_number<std::uint64_t>(json.at("sequence"));
  dump.time_ns = time_of(json.at("time_ns"), kLongest) + offset;
  for (const Json& call : json.at("entries")) dump.calls.push_back(read_call(call, offset));
  for (const Json& wait : json.at("waits")) dump.waits.push_back(read_wait(wait));
  for (const Json& peer : json.at("peers"))
    dump.peers.push_back({whole_number<int>(peer.at("rank")), process_in(peer.at("name")),
                          peer.at("state"), peer.at("stopped"),
                          whole_number<std::uint64_t>(peer.at("entered"))});
  return dump;
}

Status check(const RankDump& dump) {
  const auto is_rank = [&](int rank) { return rank >= 0 && rank < dump.size; };
  constexpr int kMostRanks = 1 << 20;
  bool fine = is_rank(dump.rank) && dump.size <= kMostRanks;
  for (const DumpedWait& wait : dump.waits)
    fine = fine && std::all_of(wait.ranks.begin(), wait.ranks.end(), is_rank);
  for (const DumpedPeer& peer : dump.peers) fine = fine && is_rank(peer.rank);
  return fine ? Status() : error(Code::invalid_argument, "it names ranks that there are not");
}

}  // namespace

const DumpedCall* RankDump::call(std::uint64_t number) const {
  const auto found = std::find_if(calls.begin(), calls.end(),
                                  [&](const DumpedCall& one) { return one.number == number; });
  return found == calls.end() ? nullptr : &*found;
}

Result<std::vector<RankDump>> parse_dumps(const std::string& text) try {
  const Json json = Json::parse(text);
  if (!json.is_object() || json.value("anyccl_dump", 0) != kFormat)
    return error(Code::invalid_argument, "it is no dump of this version of anyccl");
  std::vector<RankDump> dumps{read(json)};
  for (const Json& other : json.value("threads", Json::array())) dumps.push_back(read(other));
  for (const RankDump& dump : dumps) ANYCCL_CHECK(check(dump));
  return dumps;
} catch (const Json::exception& problem) {
  return error(Code::invalid_argument, "it is no dump: {}", problem.what());
}

Result<RankDump> parse_dump(const std::string& text) {
  ANYCCL_TRY(std::vector<RankDump> dumps, parse_dumps(text));
  return std::move(dumps.front());
}

Result<std::vector<RankDump>> read_dumps(const std::vector<std::string>& paths) {
  std::vector<RankDump> dumps;
  ANYCCL_CHECK(read_each(paths, "anyccl-", [&](const std::string& text) -> Status {
    ANYCCL_TRY(std::vector<RankDump> found, parse_dumps(text));
    std::move(found.begin(), found.end(), std::back_inserter(dumps));
    return {};
  }));
  return dumps;
}

}  // namespace anyccl::cli
