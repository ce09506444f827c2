#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tool.hpp"

namespace anyccl::cli {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A file that is gone after the test.
class TemporaryFile {
 public:
  TemporaryFile() { EXPECT_EQ(::close(::mkstemp(path_.data())), 0); }
  TemporaryFile(TemporaryFile&&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/anyccl_perf_test_XXXXXX";
};

/// The rows that `anyccl before... perf arguments...` writes for a few small sizes.
nlohmann::json rows_of(std::vector<std::string> before, std::vector<std::string> arguments) {
  const TemporaryFile file;
  std::vector<std::string> command = std::move(before);
  command.emplace_back("perf");
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(),
                 {"-b", "64", "-e", "4K", "-f", "8", "-n", "5", "--json", file.path()});
  Tool tool(command);
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  EXPECT_TRUE(contains(tool.out(), "# wrong values: 0 (all right)")) << tool.out();
  std::ifstream in(file.path());
  return nlohmann::json::parse(in);
}

class PerfOperation : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Operations, PerfOperation,
                         ::testing::Values("all_reduce", "reduce", "reduce_scatter", "all_gather",
                                           "broadcast", "gather", "scatter", "all_to_all",
                                           "all_to_all_v", "all_gather_v", "reduce_scatter_v",
                                           "gather_v", "scatter_v", "send_recv", "barrier"));

TEST_P(PerfOperation, is_right_between_processes) {
  for (const auto& row : rows_of({}, {GetParam(), "-g", "3", "-d", "all", "-o", "all"})) {
    EXPECT_EQ(row["op"], GetParam());
    EXPECT_EQ(row["ranks"], 3);
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_GT(row["median_us"], 0.0);
    EXPECT_LE(row["min_us"], row["median_us"]);
    EXPECT_LE(row["median_us"], row["p99_us"]);
  }
}

TEST_P(PerfOperation, is_right_between_threads) {
  EXPECT_FALSE(rows_of({}, {GetParam(), "-g", "2", "--threads"}).empty());
}

TEST(Perf, has_a_row_for_each_size_and_for_in_place) {
  const nlohmann::json rows = rows_of({}, {"all_reduce", "-g", "2"});
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0]["bytes"], 64);
  EXPECT_EQ(rows[0]["inplace"], false);
  EXPECT_EQ(rows[1]["inplace"], true);
  EXPECT_EQ(rows[5]["bytes"], 4096);
}

TEST(Perf, says_how_it_ran) {
  const nlohmann::json rows = rows_of({}, {"all_reduce", "-g", "2", "--transport", "tcp"});
  EXPECT_TRUE(contains(rows[0]["algorithm"].get<std::string>(), "all_reduce/")) << rows[0];
  EXPECT_TRUE(rows[0]["transport"].get<std::string>().starts_with("tcp")) << rows[0];
}

TEST(Perf, claims_no_algorithm_for_point_to_point) {
  EXPECT_EQ(rows_of({}, {"send_recv", "-g", "2"})[0]["algorithm"], "-");
}

TEST(Perf, hands_the_transport_to_threads_too) {
  const nlohmann::json rows =
      rows_of({}, {"all_reduce", "-g", "2", "--threads", "--transport", "tcp"});
  EXPECT_TRUE(rows[0]["transport"].get<std::string>().starts_with("tcp")) << rows[0];
}

TEST(Perf, joins_the_job_that_it_is_part_of) {
  const nlohmann::json rows =
      rows_of({"run", "-n", "3", "--no-prefix", "--", ANYCCL_TOOL}, {"all_reduce"});
  EXPECT_EQ(rows[0]["ranks"], 3);
}

TEST(Perf, refuses_another_number_of_ranks_than_its_job_has) {
  Tool tool({"run", "-n", "1", "--", ANYCCL_TOOL, "perf", "barrier", "-g", "2"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "rank 0 of a job of 1 ranks already: --ranks 2 does not fit"))
      << tool.err();
}

TEST(Perf, is_right_without_touching) {
  EXPECT_EQ(rows_of({}, {"all_reduce", "-g", "2", "--touch", "0"})[1]["wrong"], 0);
}

TEST(Perf, takes_buffers_that_begin_anywhere_in_a_page) {
  for (const auto& row : rows_of({}, {"all_reduce", "-g", "2", "--offset", "16"}))
    EXPECT_EQ(row["wrong"], 0);
  Tool tool({"perf", "all_reduce", "-g", "2", "--offset", "4096"});
  EXPECT_NE(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.err(), "--offset")) << tool.err();
}

TEST(Perf, refuses_an_unknown_operation) {
  Tool tool({"perf", "all_produce"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "all_produce not in {all_reduce,")) << tool.err();
}

TEST(Perf, refuses_a_size_that_is_none) {
  Tool tool({"perf", "all_reduce", "-b", "4X"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "'4X' is not a size")) << tool.err();
}

TEST(Perf, refuses_a_root_that_does_not_exist) {
  Tool tool({"perf", "broadcast", "-g", "2", "-r", "2"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "root 2 does not exist among 2 ranks")) << tool.err();
}

TEST(Perf, says_why_other_flags_of_nccl_tests_are_not_here) {
  for (const char* flag : {"-t", "-m", "-z", "-a", "-p", "-G", "-T", "-C"}) {
    Tool tool({"perf", "all_reduce", flag, "1"});
    EXPECT_EQ(tool.finish(), 2) << flag;
    EXPECT_TRUE(contains(tool.err(), std::string("perf: ") + flag + ",--")) << tool.err();
    EXPECT_TRUE(contains(tool.err(), "not here: ")) << tool.err();
  }
}

TEST(Perf, takes_rules_for_algorithms_and_protocols) {
  const nlohmann::json rows = rows_of({}, {"all_reduce", "-g", "2", "--algo", "ring@-1K,two_shot",
                                           "--proto", "LL@-256,Simple@256-1K,LL128"});
  const auto of = [&](std::size_t i) {
    return rows[i]["algorithm"].get<std::string>() + " " + rows[i]["protocol"].get<std::string>();
  };
  ASSERT_EQ(rows.size(), 6U);  // 64, 512 and 4096 bytes
  EXPECT_EQ(of(0), "all_reduce/ring LL");
  EXPECT_EQ(of(2), "all_reduce/ring Simple");
  EXPECT_EQ(of(4), "all_reduce/two_shot LL128");
}

TEST(Perf, refuses_rules_that_are_wrong_by_the_name_of_the_flag) {
  for (const auto& [flag, value] : {std::pair{"--algo", "rnig"}, {"--proto", "fast"}}) {
    Tool tool({"perf", "all_reduce", flag, value});
    EXPECT_EQ(tool.finish(), 2);
    EXPECT_TRUE(contains(tool.err(), std::string(flag) + ": '" + value + "'")) << tool.err();
  }
}

TEST(Perf, lists_each_name_once_in_its_help) {
  Tool tool({"perf", "--help"});
  EXPECT_EQ(tool.finish(), 0);
  const std::string& help = tool.out();
  for (std::size_t at = 0; (at = help.find('{', at)) != std::string::npos; ++at) {
    std::istringstream names(help.substr(at + 1, help.find('}', at) - at - 1));
    std::set<std::string> seen;
    for (std::string name; std::getline(names, name, ',');)
      EXPECT_TRUE(seen.insert(name).second) << name << " is twice in " << names.str();
  }
}

}  // namespace
}  // namespace anyccl::cli
