#include "framework/tuning/algorithm_rules.hpp"

#include <gtest/gtest.h>

namespace anyccl::test {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = kKiB * 1024;

std::string wanted(const AlgorithmRules& rules, Collective collective, std::size_t bytes) {
  const Algorithm* const found = rules.wanted({{.collective = collective, .size = 6}, bytes});
  return found == nullptr ? "" : std::string(found->name);
}

TEST(AlgorithmRules, a_name_holds_where_there_is_such_an_algorithm) {
  const auto rules = AlgorithmRules::parse("ring");
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(wanted(*rules, Collective::all_reduce, 8), "ring");
  EXPECT_EQ(wanted(*rules, Collective::all_gather, kMiB), "ring");
  EXPECT_EQ(wanted(*rules, Collective::barrier, 0), "");
  EXPECT_TRUE(rules->names(Collective::all_reduce));
  EXPECT_FALSE(rules->names(Collective::barrier));
}

TEST(AlgorithmRules, collectives_and_sizes_have_their_own) {
  const auto rules =
      AlgorithmRules::parse("all_reduce:one_shot@-4K,ring@1M-,two_shot@4K-64K;broadcast:binomial");
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  EXPECT_EQ(wanted(*rules, Collective::all_reduce, 4 * kKiB - 1), "one_shot");
  EXPECT_EQ(wanted(*rules, Collective::all_reduce, 4 * kKiB), "two_shot");
  EXPECT_EQ(wanted(*rules, Collective::all_reduce, 64 * kKiB), "");
  EXPECT_EQ(wanted(*rules, Collective::all_reduce, kMiB), "ring");
  EXPECT_EQ(wanted(*rules, Collective::broadcast, kMiB), "binomial");
  EXPECT_EQ(wanted(*rules, Collective::reduce, kMiB), "");
}

TEST(AlgorithmRules, the_first_that_fits_decides) {
  const auto rules = AlgorithmRules::parse("all_reduce:one_shot@-1K;two_shot");
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(wanted(*rules, Collective::all_reduce, 8), "one_shot");
  EXPECT_EQ(wanted(*rules, Collective::all_reduce, kKiB), "two_shot");
}

TEST(AlgorithmRules, of_several_names_the_first_that_the_ranks_can_do_counts) {
  const auto rules = AlgorithmRules::parse("hypercube,ring");
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(wanted(*rules, Collective::all_reduce, 8), "ring") << "6 is no power of two";
  const auto none = AlgorithmRules::parse("hypercube");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(wanted(*none, Collective::all_reduce, 8), "hypercube") << "the tuner says why not";
}

TEST(AlgorithmRules, name_nothing_of_a_collective_that_has_no_such_algorithm) {
  EXPECT_TRUE(AlgorithmRules::parse("ring")->misses(Collective::barrier));
  EXPECT_FALSE(AlgorithmRules::parse("ring")->misses(Collective::all_reduce));
  EXPECT_FALSE(AlgorithmRules::parse("^ring")->misses(Collective::barrier));
  EXPECT_FALSE(AlgorithmRules::parse("all_reduce:ring")->misses(Collective::barrier));
  EXPECT_FALSE(AlgorithmRules().misses(Collective::barrier));
}

TEST(AlgorithmRules, some_are_excluded) {
  const auto rules = AlgorithmRules::parse("broadcast:^flat;^ring@1M-");
  ASSERT_TRUE(rules.ok());
  const Algorithm& flat = *find_algorithm(Collective::broadcast, "flat");
  const Algorithm& other_flat = *find_algorithm(Collective::reduce, "flat");
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  EXPECT_TRUE(rules->excludes(flat, 8));
  EXPECT_FALSE(rules->excludes(other_flat, 8));
  EXPECT_FALSE(rules->excludes(ring, 8));
  EXPECT_TRUE(rules->excludes(ring, kMiB));
  EXPECT_EQ(wanted(*rules, Collective::broadcast, 8), "");
}

TEST(AlgorithmRules, errors_say_what_is_wrong_and_what_is_allowed) {
  const auto expect = [](const char* text, const char* part) {
    const auto rules = AlgorithmRules::parse(text);
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_EQ(rules.status().code(), Code::invalid_argument);
    EXPECT_NE(rules.status().message().find(part), std::string::npos) << rules.status().message();
  };
  expect("rnig", "'rnig' is not an algorithm; there are one_shot, two_shot");
  expect("all_reduce:rnig", "'rnig' is not an algorithm of all_reduce; there are one_shot");
  expect("allreduce:ring", "'allreduce' is not a collective; there are all_reduce");
  expect("ring@", "'ring@' has no sizes such as @-4K, @4K-1M or @1M-");
  expect("ring@-", "has no sizes");
  expect("ring@1M", "has no sizes");
  expect("ring@1X-", "'1X' is not a size");
  expect("ring@1M-1K", "no size is from 1M and below 1K");
  expect("ring;", "'' is not an algorithm");
  expect("ring,,", "'' is not an algorithm");
  expect("^", "'' is not an algorithm");
}

TEST(AlgorithmRules, errors_name_the_setting) {
  for (const char* text : {"rnig", "allreduce:ring", "ring@1M", "ring@1X-", "ring@1M-1K"}) {
    const std::string message(AlgorithmRules::parse(text, "--algo").status().message());
    EXPECT_EQ(message.rfind("--algo: ", 0), 0U) << message;
  }
}

TEST(AlgorithmRules, errors_name_each_algorithm_once) {
  const std::string text(AlgorithmRules::parse("rnig").status().message());
  EXPECT_EQ(text.find("circulant"), text.rfind("circulant")) << text;
}

}  // namespace
}  // namespace anyccl::test
