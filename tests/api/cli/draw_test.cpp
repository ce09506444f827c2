#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tool.hpp"

namespace anyccl::cli {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Draw, prints_a_line_for_each_message) {
  Tool tool({"draw", "all_reduce/ring", "-n", "3"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), "all_reduce/ring, 3 ranks: 4 rounds")) << tool.out();
  EXPECT_TRUE(contains(tool.out(), "recv_reduce_send")) << tool.out();
}

TEST(Draw, takes_a_name_that_only_one_algorithm_has) {
  Tool tool({"draw", "dissemination"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), "barrier/dissemination, 4 ranks")) << tool.out();
}

TEST(Draw, draws_from_the_root) {
  Tool tool({"draw", "broadcast/flat", "-n", "2", "--root", "1"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), "\n1      1     0   ")) << tool.out();
}

TEST(Draw, draws_the_hosts) {
  Tool tool({"draw", "all_reduce/two_level", "-n", "3", "--hosts", "2,1", "--svg"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), ">host 1</text>")) << tool.out();
}

TEST(Draw, writes_the_picture_that_it_would_print) {
  Tool printed({"draw", "all_gather/ring", "--svg"});
  EXPECT_EQ(printed.finish(), 0);
  EXPECT_TRUE(printed.out().starts_with("<svg ")) << printed.out();

  const auto file = std::filesystem::path(::testing::TempDir()) / "anyccl_draw_test.svg";
  Tool written({"draw", "all_gather/ring", "--svg", "-o", file});
  EXPECT_EQ(written.finish(), 0);
  EXPECT_EQ(written.out(), "");
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str(), printed.out());
  std::filesystem::remove(file);
}

TEST(Draw, draws_the_neighbours_of_a_grid_with_circles) {
  Tool tool({"draw", "topology", "row=2", "column=3", "--periodic", "row,column", "--svg"});
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  EXPECT_TRUE(contains(tool.out(), "<title>2 and 0, along column</title>")) << tool.out();
}

TEST(Draw, draws_the_edges_of_a_graph_given_as_words_or_as_a_file) {
  Tool words({"draw", "topology", "0>1,1>2", "2>0"});
  EXPECT_EQ(words.finish(), 0) << words.err();
  EXPECT_TRUE(contains(words.out(), "A graph of 3 ranks and 3 edges")) << words.out();
  const auto file = std::filesystem::path(::testing::TempDir()) / "anyccl_draw_test.edges";
  std::ofstream(file) << "0>1  # a ring\n1>2\n2>0\n";
  Tool read({"draw", "topology", "--edges", file});
  EXPECT_EQ(read.finish(), 0) << read.err();
  EXPECT_EQ(read.out(), words.out());
  std::filesystem::remove(file);
}

TEST(Draw, names_the_file_that_it_cannot_read) {
  Tool tool({"draw", "topology", "--edges", "/nowhere/at/all"});
  EXPECT_EQ(tool.finish(), 1);
  EXPECT_TRUE(contains(tool.err(), "read /nowhere/at/all: No such file")) << tool.err();
}

TEST(Draw, names_the_file_that_it_cannot_write) {
  Tool tool({"draw", "all_gather/ring", "-o", "/nowhere/at/all.svg"});
  EXPECT_EQ(tool.finish(), 1);
  EXPECT_TRUE(contains(tool.err(), "write /nowhere/at/all.svg: No such file")) << tool.err();
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string why;
};
class DrawMistake : public ::testing::TestWithParam<Mistake> {};
INSTANTIATE_TEST_SUITE_P(
    Arguments, DrawMistake,
    ::testing::Values(
        Mistake{{"all_reduce/magic"}, "there is no algorithm 'all_reduce/magic' (see anyccl info)"},
        Mistake{{"ring"}, "algorithms, name one of them: all_reduce/ring, "},
        Mistake{{"all_reduce/ring", "-n", "33"}, "33 ranks cannot be drawn, only 1 to 32"},
        Mistake{{"all_reduce/ring", "-n", "x"}, "--ranks = x"},
        Mistake{{"all_reduce/ring", "--root", "0"}, "--root: all_reduce has no root"},
        Mistake{{"gather/flat", "--root", "4"}, "rank 4 cannot be the root of 4 ranks"},
        Mistake{{"all_reduce/two_level", "--hosts", "2,3"}, "--hosts: these have 5 ranks, not 4"},
        Mistake{{"all_reduce/two_level", "--hosts", "4,0"},
                "--hosts: one cannot have 0 of 4 ranks"},
        Mistake{{"topology"}, "either dimensions, as x=4 y=3, or edges"},
        Mistake{{"topology", "0>1", "--edges", "file"}, "either dimensions"},
        Mistake{{"topology", "0>1", "1>"}, "edge 2, '1>' is not an edge"},
        Mistake{{"topology", "x=0"}, "'x=0' is not a dimension"},
        Mistake{{"topology", "x=4", "--periodic", "y"}, "there is no dimension 'y', but x"},
        Mistake{{"topology", "0>1", "--periodic", "y"}, "a graph has no dimension 'y'"},
        Mistake{{"grid", "x=4", "--periodic", "x"}, "--periodic: only of a topology"},
        Mistake{{"ring", "--edges", "file"}, "--edges: only of a topology"},
        Mistake{{"all_reduce/ring", "x=4"}, "only a grid and a topology have dimensions"},
        Mistake{{}, "algorithm"}));

TEST_P(DrawMistake, is_refused_in_words) {
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.insert(arguments.begin(), "draw");
  Tool tool(arguments);
  EXPECT_EQ(tool.finish(), 2) << tool.out();
  EXPECT_EQ(tool.out(), "");
  EXPECT_TRUE(contains(tool.err(), GetParam().why)) << tool.err();
}

}  // namespace
}  // namespace anyccl::cli
