#include "framework/records/record_json.hpp"

#include <unistd.h>

#include "algorithm/catalog/algorithm.hpp"
#include "framework/tuning/protocol_rules.hpp"

namespace anyccl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStates[] = {"issued", "running", "done", "failed"};
constexpr std::string_view kOthers[] = {"", "put", "signal", "signal_wait", "probe"};

}  // namespace

Json writer_json(const Membership& me, std::int64_t time_ns) {
  return {{"version", ANYCCL_VERSION_TEXT},
          {"host", me.host},
          {"pid", ::getpid()},
          {"communicator", me.id},
          {"name", me.name},
          {"rank", index(me.rank)},
          {"size", me.size},
          {"time_ns", time_ns},
          {"real_offset_ns", TickClock::real_offset_ns()}};
}

std::string_view name_of(Collective collective, OtherKind other) {
  return other != OtherKind::none ? kOthers[static_cast<std::size_t>(other)] : name(collective);
}

Json record_json(std::uint64_t number, const RecordedCall& call, const TickClock::Scale& scale) {
  Json json{{"number", number}};
  const bool is_other = call.other != OtherKind::none;
  json["kind"] = name_of(call.collective, call.other);
  json["state"] = kStates[static_cast<std::size_t>(call.state)];
  json["count"] = call.count;
  json["type"] = name_of(call.dtype);
  json["bytes"] = call.count * bytes_of(call.dtype);
  if (!is_other && is_scheduled(call.collective)) {
    json["sequence"] = call.position;
    if (reduces(call.collective)) json["op"] = name_of(call.op);
    if (is_rooted(call.collective)) json["root"] = index(call.root);
    if (call.parts > 0) json["parts"] = call.parts;
    json["algorithm"] = call.algorithm == nullptr ? "" : id(*call.algorithm);
    json["protocol"] = name_of(static_cast<Protocol>(call.protocol));
  } else {
    json["peer"] = index(call.root);
    json["tag"] = call.position;
  }
  if (call.stream != 0) json["stream"] = call.stream;
  json["issued_ns"] = scale.ns_at(call.issued);
  if (call.started != 0) json["started_ns"] = scale.ns_at(call.started);
  if (call.ended != 0) json["ended_ns"] = scale.ns_at(call.ended);
  if (call.awaited != RecordedCall::kNever)
    json["awaited_ns"] = scale.ns_at(call.issued + static_cast<std::uint64_t>(call.awaited));
  return json;
}

}  // namespace anyccl
