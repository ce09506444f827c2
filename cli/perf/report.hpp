#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perf/measure.hpp"

namespace anyccl::cli {

/// One measurement: one row of the JSON file, half a row of the table.
struct Row {
  std::string_view operation, type, redop;  ///< "none" where it has none.
  int ranks = 1;
  int root = -1;  ///< -1: it has none.
  std::size_t bytes = 0, count = 0;
  bool in_place = false;
  Measurement measured = {};
  double bus_factor = 0;

  double algorithm_GBps() const;
  double bus_GBps() const { return algorithm_GBps() * bus_factor; }
};

/// `redop`: its name, for an operation that has one.
Row row_of(const Operation& operation, const Case& c, std::string_view redop, Measurement measured);

/// Measurement::plan in its parts; "-" for a missing part.
struct PlanText {
  std::string algorithm = "-", protocol = "-", transport = "-";
};
PlanText split_plan(std::string_view text);

/// The comment lines above the table. `where`: such as "4 ranks (processes)".
std::string table_head(const PerfOptions& options, std::string_view where);
/// One line of the table; either half may be absent, not both.
std::string table_line(const std::optional<Row>& out_of_place, const std::optional<Row>& in_place);
/// The comment lines below it.
std::string table_foot(const std::vector<Row>& rows);

/// Writes all rows as a JSON array.
Status write_json(const std::string& file, const std::vector<Row>& rows);
/// The rows of several such files, as the text of one file.
Result<std::string> joined_json(const std::vector<std::string>& files);

}  // namespace anyccl::cli
