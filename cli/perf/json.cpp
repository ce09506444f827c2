#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "perf/report.hpp"

namespace anyccl::cli {
namespace {

nlohmann::ordered_json to_json(const Row& row) {
  const PlanText plan = split_plan(row.measured.plan);
  const Summary& call = row.measured.call;
  return {{"op", row.operation},
          {"ranks", row.ranks},
          {"bytes", row.bytes},
          {"count", row.count},
          {"dtype", row.type},
          {"redop", row.redop},
          {"root", row.root},
          {"inplace", row.in_place},
          {"median_us", call.median_us},
          {"min_us", call.min_us},
          {"p99_us", call.p99_us},
          {"loop_us", row.measured.loop_us},
          {"algbw_GBps", row.algorithm_GBps()},
          {"busbw_GBps", row.bus_GBps()},
          {"algorithm", plan.algorithm},
          {"protocol", plan.protocol},
          {"transport", plan.transport},
          {"wrong", row.measured.wrong}};
}

}  // namespace

Status write_json(const std::string& file, const std::vector<Row>& rows) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Row& row : rows) array.push_back(to_json(row));
  std::ofstream out(file);
  out << array.dump(1) << '\n';
  out.close();
  if (!out) return system_error(errno, "write {}", file);
  return {};
}

}  // namespace anyccl::cli
