// What every verb shares: help, version, and errors of the command line.
#include "tool.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>

#include "support/temporary_folder.hpp"

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

/// `make run` builds no anyccl-lab.
TEST(Tool, does_without_the_program_that_has_all_verbs) {
  const test::TemporaryFolder folder;
  const std::string tool = folder.path() + "/anyccl";
  std::filesystem::copy_file(ANYCCL_TOOL, tool);
  const auto ends_with = [&](const std::string& arguments, int code, const std::string& text) {
    const std::string pattern = " 2>&1 | grep -qF -- '" + text + "'";
    EXPECT_EQ(::system((tool + " " + arguments + pattern).c_str()), 0) << arguments;
    const int status = ::system((tool + " " + arguments + " >/dev/null 2>&1").c_str());
    EXPECT_EQ(WEXITSTATUS(status), code) << arguments;
  };
  ends_with("simulate all_reduce", 2, "anyccl-lab, which has more, is not beside this program");
  ends_with("--help", 0, "perf");
  ends_with("", 2, "Usage: anyccl");
  ends_with("--version", 0, "anyccl " ANYCCL_VERSION_TEXT);
  ends_with("info", 0, "anyccl ");
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

TEST(Tool, says_that_its_output_cannot_be_written) {
  for (const char* arguments : {"--help", "info", "check all_reduce/ring --ranks 2..4"}) {
    const std::string command =
        std::string(ANYCCL_TOOL) + " " + arguments + " 2>&1 >/dev/full | grep -q 'cannot write'";
    EXPECT_EQ(::system(command.c_str()), 0) << command;
    const std::string code = std::string(ANYCCL_TOOL) + " " + arguments + " >/dev/full 2>/dev/null";
    const int status = ::system(code.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << code << ": " << status;
  }
}

TEST(Tool, takes_no_number_for_another_one) {
  for (const char* number : {"-2", "+2", "99999999999999999999", "2.5", "nan", "0x2", "2 "}) {
    Tool tool({"perf", "all_reduce", "-b", "8", "-e", "64", std::string("--stepfactor=") + number});
    EXPECT_EQ(tool.finish(), 2) << number;
    EXPECT_NE(tool.err().find("is not a whole number of 0 or more"), std::string::npos)
        << number << ": " << tool.err();
  }
}

}  // namespace
}  // namespace anyccl::cli
