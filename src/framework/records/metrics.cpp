#include "framework/records/metrics.hpp"

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"
#include "framework/records/record_json.hpp"
#include "framework/tuning/protocol_rules.hpp"

namespace anyccl {

SpentCalls::SpentCalls(const Recorder& recorder) {
  const TickClock::Scale scale = recorder.clock().scale();
  const CallTotals totals = recorder.totals();
  for (const CallTotals::Row& row : totals.rows()) {
    const bool is_planned = row.algorithm != nullptr;
    add({std::string(name_of(row.collective, row.other)),
         std::string(is_planned ? row.algorithm->name : std::string_view()),
         std::string(is_planned ? name_of(static_cast<Protocol>(row.protocol)) : ""), row.calls,
         row.failed, row.bytes, static_cast<double>(scale.ns_of(row.ticks)) / 1e9});
  }
}

void SpentCalls::add(const SpentCalls& other) {
  for (const Row& row : other.rows_) add(row);
}

void SpentCalls::add(Row row) {
  const auto same = std::find_if(rows_.begin(), rows_.end(), [&](const Row& one) {
    return one.operation == row.operation && one.algorithm == row.algorithm &&
           one.protocol == row.protocol;
  });
  if (same == rows_.end()) return rows_.push_back(std::move(row));
  same->calls += row.calls;
  same->failed += row.failed;
  same->bytes += row.bytes;
  same->seconds += row.seconds;
}

std::string text_of(const Metrics& metrics, const Membership& me) {
  using Json = nlohmann::ordered_json;
  Json json = writer_json(me, TickClock::monotonic_ns());
  json["completed"] = metrics.completed;
  json["failed"] = metrics.has_failed;
  json["memory_bytes"] = metrics.memory_bytes;
  Json& operations = json["operations"] = Json::array();
  for (const SpentCalls::Row& row : metrics.calls.rows())
    operations.push_back({{"operation", row.operation},
                          {"algorithm", row.algorithm},
                          {"protocol", row.protocol},
                          {"calls", row.calls},
                          {"failed", row.failed},
                          {"bytes", row.bytes},
                          {"seconds", row.seconds}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace anyccl
