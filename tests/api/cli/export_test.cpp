// `anyccl export`, and what reads its text again.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "support/temporary_folder.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

using test::TemporaryFolder;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The output of the tool, once it has ended well.
std::string printed(std::vector<std::string> arguments) {
  Tool tool(std::move(arguments));
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  return tool.out();
}

TEST(Export, prints_what_check_reads_from_standard_input) {
  Tool check({"check", "--file", "-"});
  check.send(printed({"export", "all_reduce/ring", "-n", "2..5"}));
  EXPECT_EQ(check.finish(), 0) << check.out() << check.err();
  EXPECT_TRUE(contains(check.out(), "all_reduce/ring")) << check.out();
  EXPECT_TRUE(contains(check.out(), "2..5")) << check.out();
}

TEST(Export, writes_a_file_that_other_verbs_take_for_an_algorithm) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/mine.json";
  printed({"export", "all_reduce/two_level", "-n", "4", "--hosts", "2,2", "--name", "mine", "-o",
           file});
  EXPECT_TRUE(contains(printed({"check", "--file", file}), "all_reduce/mine"));
  EXPECT_TRUE(contains(printed({"draw", file, "-n", "4", "--hosts", "2,2"}), "round"));
  EXPECT_EQ(
      printed({"export", file, "-n", "4", "--hosts", "2,2"}),
      printed({"export", "all_reduce/two_level", "-n", "4", "--hosts", "2,2", "--name", "mine"}));
}

TEST(Explore, shows_the_algorithm_of_a_file) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/mine.json", page = folder.path() + "/mine.html";
  printed({"export", "all_reduce/ring", "-n", "2", "--name", "mine", "-o", file});
  printed({"explore", file, "all_reduce/two_shot", file, "-n", "2", "-o", page});
  std::ifstream in(page);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t mine = text.find(R"("id":"all_reduce/mine")");
  EXPECT_NE(mine, std::string::npos);
  EXPECT_LT(text.find(R"("id":"all_reduce/two_shot")"), mine);
  EXPECT_EQ(text.find(R"("id":"all_reduce/mine")", mine + 1), std::string::npos);
}

TEST(Explore, refuses_two_algorithms_of_one_name) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/mine.json";
  printed({"export", "all_reduce/ring", "-n", "2", "-o", file});
  Tool tool({"explore", "all_reduce/ring", file, "-n", "2", "-o", folder.path() + "/mine.html"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "two of the algorithms have the name all_reduce/ring"))
      << tool.err();
}

TEST(Export, refuses_what_the_algorithm_cannot_do) {
  Tool tool({"export", "all_reduce/hypercube", "-n", "6"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "does not support 6 ranks: it needs a power of two"))
      << tool.err();
}

TEST(Export, a_fault_in_a_file_is_found_with_its_place) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/mine.json";
  std::string text = printed({"export", "all_reduce/ring", "-n", "3", "--name", "mine"});
  const std::size_t step = text.find("[\"recv_reduce\"");
  ASSERT_NE(step, std::string::npos);
  std::ofstream(file) << text.substr(0, step) << text.substr(text.find("],[", step) + 2);
  Tool check({"check", "--file", file});
  EXPECT_EQ(check.finish(), 1);
  EXPECT_TRUE(contains(check.out(), "FAULT: " + file)) << check.out();
  EXPECT_TRUE(contains(check.out(), "rank 0 step")) << check.out();
}

TEST(Export, algorithms_of_the_environment_are_known_by_name) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/mine.json";
  printed({"export", "all_reduce/ring", "-n", "2", "--name", "mine", "-o", file});
  ASSERT_EQ(::setenv("ANYCCL_ALGO_PATH", file.c_str(), 1), 0);
  EXPECT_TRUE(contains(printed({"check", "all_reduce/mine"}), "right\n"));
  EXPECT_TRUE(contains(printed({"explain", "all_reduce", "-n", "2", "--algo", "mine"}), "* mine"));
  ASSERT_EQ(::unsetenv("ANYCCL_ALGO_PATH"), 0);
}

TEST(Export, goal_has_every_message_at_both_ends) {
  const std::string text = printed({"export", "all_reduce/ring", "-n", "2", "--goal", "-b", "1K"});
  EXPECT_EQ(text,
            "num_ranks 2\n"
            "\nrank 0 {\n"
            "l1: send 512b to 1 tag 0\n"
            "l2: recv 512b from 1 tag 0\n"
            "l3: calc 102\nl3 requires l2\n"
            "l4: send 512b to 1 tag 1\nl4 requires l3\n"
            "l5: recv 512b from 1 tag 1\n"
            "}\n"
            "\nrank 1 {\n"
            "l1: send 512b to 0 tag 0\n"
            "l2: recv 512b from 0 tag 0\n"
            "l3: calc 102\nl3 requires l2\n"
            "l4: send 512b to 0 tag 1\nl4 requires l3\n"
            "l5: recv 512b from 0 tag 1\n"
            "}\n");
}

TEST(Export, goal_needs_a_size) {
  Tool tool({"export", "all_reduce/ring", "--goal"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "--bytes")) << tool.err();
}

TEST(Perf, measures_the_algorithm_of_a_file) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/mine.json";
  printed({"export", "all_reduce/ring", "-n", "2", "--name", "mine", "-o", file});
  EXPECT_TRUE(contains(printed({"perf", "all_reduce", "-g", "2", "-b", "8", "-e", "8", "-n", "3",
                                "--algo-file", file}),
                       "mine"));
}

}  // namespace
}  // namespace anyccl::cli
