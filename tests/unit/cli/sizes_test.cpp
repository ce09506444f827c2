#include "perf/sizes.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace anyccl::cli {
namespace {

using Sizes = std::vector<std::size_t>;

TEST(ParseSize, takes_plain_bytes) {
  EXPECT_EQ(*parse_size("8"), 8U);
}

TEST(ParseSize, suffixes_are_powers_of_1024) {
  EXPECT_EQ(*parse_size("4K"), 4096U);
  EXPECT_EQ(*parse_size("1M"), 1048576U);
  EXPECT_EQ(*parse_size("2G"), 2147483648U);
}

TEST(ParseSize, suffixes_may_be_small) {
  EXPECT_EQ(*parse_size("64k"), 65536U);
}

TEST(ParseSize, refuses_what_is_no_size) {
  for (const char* text : {"", "K", "4X", "-8", "4KB", "1.5M", " 8"})
    EXPECT_FALSE(parse_size(text).ok()) << text;
}

TEST(ParseSize, refuses_what_would_overflow) {
  EXPECT_FALSE(parse_size("99999999999G").ok());
  EXPECT_FALSE(parse_size("99999999999999999999").ok());
}

TEST(SizesIn, multiplies_by_the_factor) {
  EXPECT_EQ(*sizes_in({.first = 8, .last = 64, .step = 0, .factor = 2}), (Sizes{8, 16, 32, 64}));
}

TEST(SizesIn, adds_the_step_if_there_is_one) {
  EXPECT_EQ(*sizes_in({.first = 8, .last = 30, .step = 10, .factor = 2}), (Sizes{8, 18, 28}));
}

TEST(SizesIn, stays_below_a_last_size_that_is_no_multiple) {
  EXPECT_EQ(*sizes_in({.first = 8, .last = 100, .step = 0, .factor = 8}), (Sizes{8, 64}));
}

TEST(SizesIn, ends_before_a_size_that_no_number_holds) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(*sizes_in({.first = 8, .last = 64, .step = 0, .factor = std::size_t{1} << 61}),
            (Sizes{8}));
  EXPECT_EQ(*sizes_in({.first = 8, .last = kMost, .step = kMost - 9, .factor = 2}),
            (Sizes{8, kMost - 1}));
}

TEST(SizesIn, refuses_ranges_that_are_empty_or_never_end) {
  EXPECT_FALSE(sizes_in({.first = 16, .last = 8, .step = 0, .factor = 2}).ok());
  EXPECT_FALSE(sizes_in({.first = 0, .last = 8, .step = 0, .factor = 2}).ok());
  EXPECT_FALSE(sizes_in({.first = 8, .last = 64, .step = 0, .factor = 1}).ok());
}

}  // namespace
}  // namespace anyccl::cli
