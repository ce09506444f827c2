#include "perf/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace anyccl::cli {
namespace {

TEST(Summary, median_of_an_odd_number_is_the_middle_one) {
  EXPECT_DOUBLE_EQ(summarize({9000, 1000, 2000}).median_us, 2.0);
}

TEST(Summary, median_of_an_even_number_is_the_mean_of_the_middle_two) {
  EXPECT_DOUBLE_EQ(summarize({9000, 1000, 2000, 3000}).median_us, 2.5);
}

TEST(Summary, minimum_is_the_smallest) {
  EXPECT_DOUBLE_EQ(summarize({3000, 500, 2000}).min_us, 0.5);
}

TEST(Summary, p99_leaves_out_one_in_a_hundred) {
  std::vector<std::int64_t> times(100);
  std::iota(times.begin(), times.end(), 1);
  for (std::int64_t& time : times) time *= 1000;
  EXPECT_DOUBLE_EQ(summarize(times).p99_us, 99.0);
}

TEST(Summary, p99_of_few_is_the_largest) {
  EXPECT_DOUBLE_EQ(summarize({1000, 7000, 2000}).p99_us, 7.0);
}

TEST(Summary, one_time_is_all_of_it) {
  const Summary s = summarize({1500});
  EXPECT_DOUBLE_EQ(s.median_us, 1.5);
  EXPECT_DOUBLE_EQ(s.min_us, 1.5);
  EXPECT_DOUBLE_EQ(s.p99_us, 1.5);
}

}  // namespace
}  // namespace anyccl::cli
