#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool.hpp"

namespace anyccl::cli {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Check, prints_a_verdict) {
  Tool tool({"check", "all_reduce/ring", "--ranks", "2..4"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), "all_reduce/ring")) << tool.out();
  EXPECT_TRUE(contains(tool.out(), "2..4")) << tool.out();
  EXPECT_TRUE(contains(tool.out(), "right\n")) << tool.out();
}

TEST(Check, takes_an_algorithms_short_name) {
  Tool tool({"check", "ring", "--ranks", "3"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), "all_reduce/ring")) << tool.out();
}

TEST(Check, finds_every_algorithm_right) {
  Tool tool({"check", "all", "--ranks", "2..5"});
  EXPECT_EQ(tool.finish(), 0) << tool.out();
}

TEST(Check, counts_each_number_of_ranks_in_json) {
  Tool tool({"check", "all_reduce/ring", "--ranks", "2..4", "--json"});
  EXPECT_EQ(tool.finish(), 0);
  const nlohmann::json rows = nlohmann::json::parse(tool.out());
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["right"], true);
  ASSERT_EQ(rows[0]["sizes"].size(), 3U);
  EXPECT_EQ(rows[0]["sizes"][2]["ranks"], 4);
  EXPECT_EQ(rows[0]["sizes"][2]["rounds"], 6);  // 2 (n - 1)
  EXPECT_EQ(rows[0]["sizes"][2]["order"], "position");
}

TEST(Check, refuses_an_unknown_algorithm) {
  Tool tool({"check", "all_reduce/magic"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "there is no algorithm 'all_reduce/magic'")) << tool.err();
}

class CheckRange : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ranges, CheckRange,
                         ::testing::Values("", "x", "0..4", "4..2", "2..", "2-4", "2..4x",
                                           "2..99999"));

TEST_P(CheckRange, is_refused_if_it_makes_no_sense) {
  Tool tool({"check", "all_reduce/ring", "--ranks", GetParam()});
  EXPECT_EQ(tool.finish(), 2) << tool.out() << tool.err();
}

}  // namespace
}  // namespace anyccl::cli
