#include <nlohmann/json.hpp>

#include "trace/summary.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string json_of(const TraceSummary& summary, const std::vector<HostClock>& clocks) {
  Json json{{"exposed_share", summary.exposed_share()},
            {"late_share", summary.late_share()},
            {"left_out", summary.left_out}};
  for (const char* list : {"ranks", "operations", "late", "clocks"}) json[list] = Json::array();
  for (const RankTimes& rank : summary.ranks)
    json["ranks"].push_back({{"rank", rank.label},
                             {"total_ns", rank.total},
                             {"communicating_ns", rank.communicating},
                             {"exposed_ns", rank.exposed},
                             {"for_late_ns", rank.for_late}});
  for (const OperationTimes& times : summary.operations)
    json["operations"].push_back({{"kind", times.kind},
                                  {"bytes", times.bytes},
                                  {"calls", times.calls},
                                  {"total_ns", times.total},
                                  {"median_ns", times.median},
                                  {"for_late_ns", times.for_late}});
  for (const LateRank& late : summary.late)
    json["late"].push_back({{"communicator", late.communicator},
                            {"rank", late.rank},
                            {"last", late.last},
                            {"of", late.of},
                            {"total_ns", late.total},
                            {"median_ns", late.median}});
  for (const HostClock& clock : clocks)
    json["clocks"].push_back(
        {{"host", clock.host}, {"ahead_ns", clock.ahead_ns}, {"error_ns", clock.error_ns}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace anyccl::cli
