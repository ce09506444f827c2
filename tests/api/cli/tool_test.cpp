// What every verb shares: help, version, and errors of the command line.
#include "tool.hpp"

#include <gtest/gtest.h>

namespace anyccl::cli {
namespace {

TEST(Tool, prints_its_version) {
  Tool tool({"--version"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_EQ(tool.out(), "anyccl " ANYCCL_VERSION_TEXT "\n");
}

TEST(Tool, help_lists_the_verbs) {
  Tool tool({"--help"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_NE(tool.out().find("run "), std::string::npos);
}

TEST(Tool, without_arguments_prints_its_help_and_fails) {
  Tool tool({});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_NE(tool.err().find("Usage: anyccl"), std::string::npos);
}

TEST(Tool, refuses_an_unknown_verb_and_lists_the_known_ones) {
  Tool tool({"frobnicate"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_NE(tool.err().find("there is no verb 'frobnicate'; the verbs are run"), std::string::npos)
      << tool.err();
}

TEST(Tool, refuses_an_unknown_flag) {
  Tool tool({"--frobnicate"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_NE(tool.err().find("unknown flag '--frobnicate'"), std::string::npos) << tool.err();
}

TEST(Tool, refuses_an_unknown_flag_of_a_verb) {
  Tool tool({"run", "--frobnicate", "-n", "2", "--", "true"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_NE(tool.err().find("run: unknown flag '--frobnicate'"), std::string::npos) << tool.err();
}

TEST(Tool, explains_a_verb) {
  Tool tool({"run", "--help"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_NE(tool.out().find("--keep-going"), std::string::npos);
}

}  // namespace
}  // namespace anyccl::cli
