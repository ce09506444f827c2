#include "framework/communicator/dump.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "algorithm/catalog/algorithm.hpp"
#include "framework/tuning/protocol_rules.hpp"
#include "platform/probe/process_state.hpp"

namespace anyccl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kStates[] = {"issued", "running", "done", "failed"};
constexpr std::string_view kPeerStates[] = {"present", "left", "dead", "gone", "silent"};

Json entry(std::uint64_t number, const RecordedCall& call, const TickClock::Scale& scale) {
  Json json{{"number", number}};
  json["kind"] = name(call.collective);
  json["state"] = kStates[static_cast<std::size_t>(call.state)];
  json["count"] = call.count;
  json["type"] = name_of(call.dtype);
  json["bytes"] = call.count * bytes_of(call.dtype);
  if (call.sequence == 0) {
    json["peer"] = index(call.root);
    json["tag"] = call.tag;
  } else {
    json["sequence"] = call.sequence;
    if (reduces(call.collective)) json["op"] = name_of(call.op);
    if (is_rooted(call.collective)) json["root"] = index(call.root);
    if (call.parts > 0) json["parts"] = call.parts;
    json["algorithm"] = call.algorithm == nullptr ? "" : id(*call.algorithm);
    json["protocol"] = name_of(static_cast<Protocol>(call.protocol));
  }
  json["issued_ns"] = scale.ns_at(call.issued);
  if (call.started != 0) json["started_ns"] = scale.ns_at(call.started);
  if (call.ended != 0) json["ended_ns"] = scale.ns_at(call.ended);
  return json;
}

Json ranks_of(const std::vector<Rank>& ranks) {
  Json json = Json::array();
  for (const Rank rank : ranks) json.push_back(index(rank));
  return json;
}

}  // namespace

std::string Dump::text() const {
  Json json{{"anyccl_dump", kFormat}, {"version", ANYCCL_VERSION_TEXT}, {"reason", reason}};
  json["host"] = me.host;
  json["pid"] = ::getpid();
  json["communicator"] = me.id;
  json["name"] = me.name;
  json["rank"] = index(me.rank);
  json["size"] = me.size;
  json["time_ns"] = TickClock::monotonic_ns();
  json["real_offset_ns"] = TickClock::real_offset_ns();
  json["sequence"] = sequence;
  if (!failure.ok()) json["failure"] = failure.message();
  Json& open = json["waits"] = Json::array();
  for (const OpenWait& wait : waits)
    open.push_back({{"number", wait.record},
                    {"sequence", wait.sequence},
                    {"what", wait.what},
                    {"ranks", ranks_of(wait.awaited)}});
  Json& peers = json["peers"] = Json::array();
  for (int r = 0; r < me.size; ++r) {
    Transport* const transport = routes.to[static_cast<std::size_t>(r)];
    if (transport == nullptr) continue;
    const PeerCalls calls = transport->calls_of(Rank{r});
    const int pid = me.process_of ? me.process_of(Rank{r}) : 0;
    peers.push_back({{"rank", r},
                     {"name", me.names[static_cast<std::size_t>(r)]},
                     {"state", kPeerStates[static_cast<std::size_t>(transport->state(Rank{r}))]},
                     {"stopped", pid != 0 && probe::is_stopped(pid)},
                     {"entered", calls.entered},
                     {"finished", calls.finished},
                     {"all_known", calls.is_complete}});
  }
  Json& entries = json["entries"] = Json::array();
  const TickClock::Scale scale = recorder.clock().scale();
  for (std::uint64_t number = recorder.first(); number <= recorder.last(); ++number)
    entries.push_back(entry(number, recorder[number], scale));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace anyccl
