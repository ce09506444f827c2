#include "perf/report.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "perf/changes.hpp"

namespace anyccl::cli {
namespace {

Row megabyte_in_100_us() {
  Row row;
  row.operation = "all_reduce";
  row.type = "float";
  row.redop = "sum";
  row.bytes = 1'000'000;
  row.count = 250'000;
  row.measured.call = {.median_us = 100, .min_us = 90, .p99_us = 150};
  row.measured.loop_us = 80;
  row.measured.plan = "all_reduce/two_shot Simple shm";
  row.bus_factor = 1.5;
  return row;
}

TEST(Row, bandwidth_is_bytes_by_the_median) {
  EXPECT_DOUBLE_EQ(megabyte_in_100_us().algorithm_GBps(), 10.0);
}

TEST(Row, bus_bandwidth_has_the_bus_factor) {
  EXPECT_DOUBLE_EQ(megabyte_in_100_us().bus_GBps(), 15.0);
}

TEST(PlanText, has_three_parts) {
  const PlanText plan = split_plan("all_reduce/two_shot Simple shm");
  EXPECT_EQ(plan.algorithm, "all_reduce/two_shot");
  EXPECT_EQ(plan.protocol, "Simple");
  EXPECT_EQ(plan.transport, "shm");
}

TEST(PlanText, shows_a_dash_for_what_is_missing) {
  EXPECT_EQ(split_plan("").algorithm, "-");
  EXPECT_EQ(split_plan("point_to_point").protocol, "-");
}

TEST(Table, head_says_that_nothing_is_checked_between_calls_that_are_not_touched) {
  PerfOptions options{.operation = find_operation("all_reduce")};
  EXPECT_NE(table_head(options, "2 ranks").find("touch on, check on"), std::string::npos);
  options.protocol.touch = false;
  EXPECT_NE(table_head(options, "2 ranks").find("touch off, check off"), std::string::npos);
}

TEST(Table, line_shows_both_halves_and_the_plan) {
  const std::string line = table_line(megabyte_in_100_us(), megabyte_in_100_us());
  EXPECT_EQ(line,
            "     1000000        250000     float     sum      -1     100.00   10.00   15.00      "
            "0     100.00   "
            "10.00   15.00      0      80.00  all_reduce/two_shot Simple shm\n");
}

TEST(Table, line_without_a_half_says_so) {
  EXPECT_NE(table_line(megabyte_in_100_us(), std::nullopt).find("N/A"), std::string::npos);
}

TEST(Table, foot_tells_wrong_values) {
  Row row = megabyte_in_100_us();
  EXPECT_NE(table_foot({row}).find("# wrong values: 0 (all right)"), std::string::npos);
  row.measured.wrong = 3;
  EXPECT_NE(table_foot({row, row}).find("# wrong values: 6 (FAILED)"), std::string::npos);
}

/// Rows of all algorithms of AllReduce among two ranks: each takes 10 us, but the ring `ring_us`.
std::string rows_of(int bytes, double ring_us) {
  std::string rows;
  for (const Algorithm* algorithm : candidates_of(*find_operation("all_reduce"), 2))
    rows += fmt::format(
        R"({}{{"op": "all_reduce", "algorithm": "all_reduce/{}", "protocol": "Simple",
               "transport": "shm", "ranks": 2, "count": {}, "bytes": {}, "median_us": {},
               "inplace": false}})",
        rows.empty() ? "" : ",", algorithm->name, bytes / 4, bytes,
        algorithm->name == "ring" ? ring_us : 10);
  return rows;
}

/// The table of 1, 2 and 4 KiB, where the ring is faster at 1 and 4; `middle`: the rows of 2 KiB.
std::string changes_with(const std::string& middle) {
  const TuneOptions options{
      .operations = {find_operation("all_reduce")}, .sizes = {1024, 2048, 4096}, .ranks = {2}};
  const auto table = changes_table(
      options, "[" + rows_of(1024, 1) + "," + middle + rows_of(4096, 1) + "]", "t.json");
  EXPECT_TRUE(table.ok()) << table.status().message();
  return *table;
}

TEST(Changes, have_a_line_for_sizes_next_to_each_other) {
  EXPECT_NE(changes_with(rows_of(2048, 1) + ",").find(" 1K..4K "), std::string::npos);
}

TEST(Changes, have_a_line_each_where_a_size_between_them_stays_or_was_not_measured) {
  for (const std::string& middle : {rows_of(2048, 10) + ",", std::string()}) {
    const std::string table = changes_with(middle);
    EXPECT_EQ(table.find(" 1K..4K "), std::string::npos) << table;
    EXPECT_NE(table.find(" 1K "), std::string::npos) << table;
    EXPECT_NE(table.find(" 4K "), std::string::npos) << table;
  }
}

}  // namespace
}  // namespace anyccl::cli
