#include "launch/lines.hpp"

#include <gtest/gtest.h>

namespace anyccl::cli {
namespace {

TEST(LinePrefixer, prefixes_every_complete_line) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.feed("a\nb\n"), "[0] a\n[0] b\n");
}

TEST(LinePrefixer, joins_the_parts_of_a_line) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.feed("he"), "");
  EXPECT_EQ(lines.feed("llo\nwor"), "[0] hello\n");
  EXPECT_EQ(lines.feed("ld\n"), "[0] world\n");
}

TEST(LinePrefixer, keeps_empty_lines) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.feed("\n\n"), "[0] \n[0] \n");
}

TEST(LinePrefixer, flush_ends_a_partial_line) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.feed("part"), "");
  EXPECT_EQ(lines.end_line(), "[0] part\n");
}

TEST(LinePrefixer, flush_is_silent_after_a_complete_line) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.feed("whole\n"), "[0] whole\n");
  EXPECT_EQ(lines.end_line(), "");
}

TEST(LinePrefixer, cuts_a_line_that_never_ends) {
  LinePrefixer lines("[0] ");
  const std::string endless(LinePrefixer::kLongestLine, 'x');
  EXPECT_EQ(lines.feed(endless), "[0] " + endless + "\n");
}

TEST(LinePrefixer, does_not_cut_the_longest_line_that_it_allows) {
  LinePrefixer lines("[0] ");
  const std::string longest(LinePrefixer::kLongestLine - 1, 'x');
  EXPECT_EQ(lines.feed(longest + "\n"), "[0] " + longest + "\n");
}

TEST(RankPrefix, is_plain_without_colour) {
  EXPECT_EQ(rank_prefix(3, false), "[3] ");
}

TEST(RankPrefix, resets_the_colour_before_the_text) {
  EXPECT_EQ(rank_prefix(7, true), "\x1b[32m[7]\x1b[0m ");
}

TEST(LinePrefixer, shows_a_line_that_has_no_end_yet) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.feed("a\nname? "), "[0] a\n");
  EXPECT_EQ(lines.take_begun_line(), "[0] name? ");
  EXPECT_EQ(lines.take_begun_line(), "");
  EXPECT_EQ(lines.feed("bob\nb\n"), "bob\n[0] b\n");
  EXPECT_EQ(lines.end_line(), "");
}

TEST(LinePrefixer, begins_a_line_again_that_another_one_has_ended) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.interrupt(), "");
  EXPECT_EQ(lines.feed("name? "), "");
  EXPECT_EQ(lines.take_begun_line(), "[0] name? ");
  EXPECT_EQ(lines.interrupt(), "\n");
  EXPECT_EQ(lines.feed("bob\n"), "[0] bob\n");
}

TEST(LinePrefixer, comes_again_behind_a_carriage_return) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.feed("\r10%\r20%\n"), "[0] \r[0] 10%\r[0] 20%\n");
  EXPECT_EQ(lines.feed("a\r\n"), "[0] a\r\n");
}

}  // namespace
}  // namespace anyccl::cli
