#include "framework/communicator/dump.hpp"

#include "framework/communicator/record_json.hpp"
#include "platform/probe/process_state.hpp"

namespace anyccl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kPeerStates[] = {"present", "left", "dead", "gone", "silent"};

Json ranks_of(const std::vector<Rank>& ranks) {
  Json json = Json::array();
  for (const Rank rank : ranks) json.push_back(index(rank));
  return json;
}

}  // namespace

std::string Dump::text() const {
  Json json{{"anyccl_dump", kFormat}, {"reason", reason}};
  json.update(writer_json(me));
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
    entries.push_back(record_json(number, recorder[number], scale));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace anyccl
