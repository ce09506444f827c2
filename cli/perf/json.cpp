#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "perf/report.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Row& row) {
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
          {"loop_us", row.measured.loop_us > 0 ? Json(row.measured.loop_us) : Json(nullptr)},
          {"algbw_GBps", row.algorithm_GBps()},
          {"busbw_GBps", row.bus_GBps()},
          {"algorithm", plan.algorithm},
          {"protocol", plan.protocol},
          {"transport", plan.transport},
          {"wrong", row.measured.wrong}};
}

}  // namespace

Status write_json(const std::string& file, const std::vector<Row>& rows) {
  Json array = Json::array();
  for (const Row& row : rows) array.push_back(to_json(row));
  std::ofstream out(file);
  out << array.dump(1) << '\n';
  out.close();
  if (!out) return system_error(errno, "write {}", file);
  return {};
}

Result<std::string> joined_json(const std::vector<std::string>& files) {
  Json rows = Json::array();
  for (const std::string& file : files) {
    ANYCCL_TRY(const std::string text, read_whole_file(file));
    const Json more = Json::parse(text, nullptr, false);
    if (!more.is_array()) return error(Code::system_error, "{} holds no rows", file);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows.dump(1) + "\n";
}

}  // namespace anyccl::cli
