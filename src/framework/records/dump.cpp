#include "framework/records/dump.hpp"

#include "framework/records/record_json.hpp"
#include "platform/probe/process_state.hpp"

namespace anyccl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDumpFormat = 1;
constexpr std::string_view kPeerStates[] = {"present", "left", "dead", "gone", "silent"};

Json ranks_of(const std::vector<Rank>& ranks) {
  Json json = Json::array();
  for (const Rank rank : ranks) json.push_back(index(rank));
  return json;
}

Json json_of(const Dump& dump) {
  Json json{{"anyccl_dump", kDumpFormat}, {"reason", dump.reason}};
  json.update(writer_json(dump.me, dump.time_ns));
  json["sequence"] = dump.sequence;
  if (!dump.failure.ok()) json["failure"] = dump.failure.message();
  if (dump.failure.message() == aborted_by(dump.me).message()) json["aborted"] = true;
  Json& open = json["waits"] = Json::array();
  for (const OpenWait& wait : dump.waits)
    open.push_back({{"number", wait.record},
                    {"sequence", wait.sequence},
                    {"what", wait.what},
                    {"ranks", ranks_of(wait.awaited)}});
  Json& peers = json["peers"] = Json::array();
  for (const Dump::Peer& peer : dump.peers)
    peers.push_back({{"rank", index(peer.rank)},
                     {"name", dump.me.names[uindex(peer.rank)]},
                     {"state", kPeerStates[static_cast<std::size_t>(peer.state)]},
                     {"stopped", peer.is_stopped},
                     {"entered", peer.calls.entered},
                     {"finished", peer.calls.finished},
                     {"all_known", peer.calls.is_complete}});
  Json& entries = json["entries"] = Json::array();
  std::uint64_t number = dump.calls.first;
  for (const RecordedCall& call : dump.calls.calls)
    entries.push_back(record_json(number++, call, dump.calls.scale));
  return json;
}

}  // namespace

std::vector<Dump::Peer> peers_of(const Membership& me, const Routes& routes) {
  std::vector<Dump::Peer> peers;
  for (int r = 0; r < me.size; ++r) {
    Transport* const transport = routes.to[static_cast<std::size_t>(r)];
    if (transport == nullptr) continue;
    const int pid = me.around != nullptr ? me.around->process_of(Rank{r}) : 0;
    peers.push_back({Rank{r}, transport->state(Rank{r}), pid != 0 && probe::is_stopped(pid),
                     transport->calls_of(Rank{r})});
  }
  return peers;
}

std::string text_of(std::span<const Dump> dumps) {
  Json json = json_of(dumps.front());
  for (const Dump& other : dumps.subspan(1)) json["threads"].push_back(json_of(other));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace anyccl
