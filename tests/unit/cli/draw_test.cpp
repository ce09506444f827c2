#include <gtest/gtest.h>

#include <string>

#include "algorithm/verify/check.hpp"
#include "draw/grid.hpp"
#include "draw/layout.hpp"
#include "draw/neighbors.hpp"
#include "draw/picture.hpp"
#include "well_formed.hpp"

namespace anyccl::cli {
namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

Movement moved(Collective collective, std::string_view name, int n) {
  const auto movement = movement_of(*find_algorithm(collective, name), {collective, n});
  EXPECT_TRUE(movement.ok()) << movement.status().message();
  return *movement;
}

/// As the schedules say, without running them.
std::size_t messages_of(const std::vector<Schedule>& ranks) {
  std::size_t messages = 0;
  for (const Schedule& s : ranks)
    for (const Step& step : s.steps)
      for (Rank peer : step.peers) messages += step.op == Op::send && peer != s.rank ? 1 : 0;
  return messages;
}

/// Roots 0 and last; one host and two.
std::vector<Shape> shapes_of(const Algorithm& algorithm, int n) {
  std::vector<int> two_hosts(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) two_hosts[static_cast<std::size_t>(r)] = 3 * r > n ? 1 : 0;
  std::vector<Shape> shapes;
  for (const Shape& shape :
       {Shape{algorithm.collective, n}, {algorithm.collective, n, Rank{n - 1}, false, two_hosts}})
    if (algorithm.supports(shape)) shapes.push_back(shape);
  return shapes;
}

/// Every algorithm for 1..9 ranks: what the catalog builds and what is drawn of it.
template <typename Check>
void each_of_the_catalog(Check check) {
  for (const Algorithm* algorithm : all_algorithms()) {
    std::size_t shapes = 0;
    for (int n = 1; n <= 9; ++n)
      for (const Shape& shape : shapes_of(*algorithm, n)) {
        SCOPED_TRACE(testing::Message()
                     << id(*algorithm) << ", " << n << " ranks, root " << index(shape.root));
        const Result<Movement> movement = movement_of(*algorithm, shape);
        ASSERT_TRUE(movement.ok()) << movement.status().message();
        check(build_all(*algorithm, shape), *movement);
        ++shapes;
      }
    EXPECT_GT(shapes, 0U) << id(*algorithm);
  }
}

TEST(EveryAlgorithm, draws_well_formed_xml) {
  each_of_the_catalog(
      [](const auto&, const Movement& m) { EXPECT_EQ(XmlReader(to_svg(m)).fault(), ""); });
}

TEST(EveryAlgorithm, shows_each_message_of_the_schedule_once) {
  each_of_the_catalog([](const std::vector<Schedule>& ranks, const Movement& m) {
    EXPECT_EQ(count(to_svg(m), "<g class=\"message\">"), messages_of(ranks));
  });
}

TEST(EveryAlgorithm, has_the_rounds_that_the_checker_counts) {
  each_of_the_catalog([](const std::vector<Schedule>& ranks, const Movement& m) {
    verify::Terms terms;
    const Result<verify::Outcome> checked = verify::check(ranks, terms, false);
    ASSERT_TRUE(checked.ok()) << checked.status().message();
    EXPECT_EQ(m.cost.rounds, checked->rounds);
    EXPECT_EQ(m.cost.sent, checked->sent);
    EXPECT_EQ(m.cost.roundings, checked->roundings);
  });
}

TEST(EveryAlgorithm, reads_no_message_before_it_is_sent) {
  each_of_the_catalog([](const auto&, const Movement& m) {
    for (const Message& message : m.messages) {
      EXPECT_LE(message.round, m.actions[message.action].round);
      EXPECT_EQ(message.to, m.actions[message.action].rank);
    }
  });
}

bool overlap(const Layout& at, const Box& a, const Box& b) {
  return std::abs(a.at.x - b.at.x) < at.box_width && std::abs(a.at.y - b.at.y) < at.box_height;
}

TEST(EveryAlgorithm, lays_no_two_boxes_over_each_other) {
  each_of_the_catalog([](const auto&, const Movement& m) {
    const Layout at = layout_of(m);
    for (std::size_t i = 0; i < at.boxes.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        ASSERT_FALSE(overlap(at, at.boxes[i], at.boxes[j])) << "boxes " << i << " and " << j;
  });
}

TEST(EveryAlgorithm, keeps_boxes_in_the_picture_and_arrows_going_down) {
  each_of_the_catalog([](const auto&, const Movement& m) {
    const Layout at = layout_of(m);
    for (const Box& box : at.boxes) {
      EXPECT_GE(box.at.x, 0);
      EXPECT_LE(box.at.x + at.box_width, at.width);
      EXPECT_LE(box.at.y + at.box_height, at.legend);
    }
    for (const Arrow& arrow : at.arrows) EXPECT_LT(arrow.from.y + 20, arrow.to.y);
  });
}

TEST(DrawnGrid, has_the_groups_of_each_dimension) {
  const std::vector<std::string> words{"pipeline=4", "data=2", "tensor=2"};
  const Result<Grid> grid = read_grid(words);
  ASSERT_TRUE(grid.ok()) << grid.status().message();
  const auto groups = groups_of(*grid);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0], (std::vector<std::vector<int>>{
                           {0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(groups[1][2], (std::vector<int>{4, 6}));
  EXPECT_EQ(groups[2][7], (std::vector<int>{14, 15}));
  const std::string text = to_text(*grid), svg = to_svg(*grid);
  EXPECT_NE(text.find("pipeline 4 x data 2 x tensor 2: 16 ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("tensor: 8 groups of 2\n  0 1\n  2 3\n"), std::string::npos) << text;
  EXPECT_EQ(XmlReader(svg).fault(), "");
  EXPECT_EQ(count(svg, "class=\"place\""), 3U * 16U) << "each rank once for each dimension";
}

TEST(DrawnGrid, names_words_that_are_no_dimensions) {
  for (const char* wrong : {"tensor", "=2", "tensor=", "tensor=0", "tensor=2x", "a<b=2"}) {
    const std::vector<std::string> words{wrong};
    EXPECT_NE(read_grid(words).status().message().find(wrong), std::string::npos);
  }
  EXPECT_FALSE(read_grid({}).ok());
  const std::vector<std::string> many{"a=16", "b=17"};
  EXPECT_NE(read_grid(many).status().message().find("more than 256 ranks"), std::string::npos);
}

using Words = std::vector<std::string>;

TEST(DrawnTopology, has_a_line_for_each_two_neighbours_of_a_grid) {
  const Words words{"row=2", "column=3"}, circles{"column"};
  const Result<NeighborGrid> grid = read_neighbor_grid(words, circles);
  ASSERT_TRUE(grid.ok()) << grid.status().message();
  const std::string text = to_text(*grid), svg = to_svg(*grid);
  EXPECT_NE(text.find("row 2 x column 3 (a circle): 6 ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("\n3     1 0    0, -                5, 4\n"), std::string::npos) << text;
  EXPECT_EQ(XmlReader(svg).fault(), "");
  EXPECT_EQ(count(svg, "class=\"place\""), 6U);
  EXPECT_EQ(count(svg, ", along row<"), 3U);
  EXPECT_EQ(count(svg, ", along column<"), 6U);
}

TEST(DrawnTopology, bends_lines_around_the_ranks_between_their_ends) {
  const Words words{"x=2", "y=3", "z=1"}, all{"x", "y", "z"};
  const Result<NeighborGrid> grid = read_neighbor_grid(words, all);
  ASSERT_TRUE(grid.ok());
  const std::string svg = to_svg(*grid);
  EXPECT_EQ(XmlReader(svg).fault(), "");
  EXPECT_EQ(count(svg, "<g class=\"edge\">"), 18U) << "each rank has one after it along each";
  EXPECT_EQ(count(svg, "V"), 4U) << "inside of a block, next to each other along y";
}

TEST(DrawnTopology, reads_edges_one_way_and_both_ways_in_chains_and_with_comments) {
  const auto graph = read_edges("0>1>2, 2-0 # not 3>0\n\n1>1", "", std::nullopt);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->ranks, 3);
  EXPECT_EQ(to_text(*graph),
            "A graph of 3 ranks and 5 edges\n\n"
            "rank  hears of  sends to\n"
            "0     2         1 2\n"
            "1     0 1       2 1\n"
            "2     1 0       0\n");
}

TEST(DrawnTopology, has_an_arrow_for_each_edge_and_one_with_two_heads_for_both_ways) {
  const auto graph = read_edges("0>1,1>2,2-0,3>3,0>1", "", 5);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const std::string svg = to_svg(*graph);
  EXPECT_EQ(XmlReader(svg).fault(), "");
  EXPECT_EQ(count(svg, "class=\"place\""), 5U) << "one has no edges";
  EXPECT_EQ(count(svg, "class=\"arrow\""), 5U);
  EXPECT_EQ(count(svg, "marker-start"), 1U);
  EXPECT_EQ(count(svg, "<title>0 to 1</title>"), 2U);
}

TEST(DrawnTopology, names_the_place_of_what_is_no_edge) {
  const auto refusal = [](std::string_view text, std::string_view file = "",
                          std::optional<int> ranks = {}) {
    return std::string(read_edges(text, file, ranks).status().message());
  };
  EXPECT_EQ(refusal("0>1,1>"), "edge 2, '1>' is not an edge, as 0>1, or 0-1 for both ways");
  for (const char* wrong : {"0", "0>", ">1", "0=1", "0>x", "0>>1", "0--1", "-1>0", "0>-1", "0>1x",
                            "99999999999>0", "0>1>"})
    EXPECT_EQ(refusal(wrong).find(std::string("edge 1, '") + wrong), 0U) << refusal(wrong);
  EXPECT_EQ(refusal("0>1\n# nothing\n1>2 2>", "ring.txt").find("ring.txt:3: '2>'"), 0U);
  EXPECT_EQ(refusal("0>1,1>64"), "edge 2, '1>64': rank 64 is not in 0..63");
  EXPECT_EQ(refusal("0>4", "", 4), "edge 1, '0>4': rank 4 is not in 0..3");
  EXPECT_EQ(refusal(" # 0>1", "ring.txt"), "ring.txt: there are no edges, as 0>1,1>2,2>0");
  EXPECT_NE(refusal("0>1", "", 65).find("only 1 to 64"), std::string::npos);
}

TEST(DrawnTopology, names_a_circle_that_is_no_dimension) {
  const Words words{"x=2", "y=3"}, circles{"z"};
  EXPECT_EQ(read_neighbor_grid(words, circles).status().message(),
            "--periodic: there is no dimension 'z', but x, y");
}

TEST(Movement, shows_how_a_sum_grows_along_the_ring) {
  const Movement m = moved(Collective::all_reduce, "ring", 3);
  const auto sent = [&](std::uint32_t round, Rank from) {
    for (const Message& message : m.messages)
      if (message.round == round && message.from == from) return message;
    return Message{};
  };
  const Message first = sent(1, Rank{0}), second = sent(2, Rank{1}), third = sent(3, Rank{2});
  ASSERT_EQ(first.chunks.size(), 1U);
  EXPECT_EQ(contributors(first.chunks[0]), "0");
  EXPECT_EQ(contributors(second.chunks.at(0)), "0+1");
  EXPECT_EQ(contributors(third.chunks.at(0)), "0+1+2");
  EXPECT_EQ(third.chunks[0].number, first.chunks[0].number);
}

TEST(Movement, has_each_block_of_all_to_all_where_it_belongs) {
  const Movement m = moved(Collective::all_to_all, "direct", 2);
  ASSERT_EQ(m.after[1].size(), 2U);
  EXPECT_EQ(m.after[1][0].number, 1U);  // block 1 of rank 0
  EXPECT_EQ(m.after[1][1].number, 3U);  // block 1 of rank 1
  EXPECT_EQ(contributors(m.after[1][0]), "0");
}

TEST(Movement, names_steps_as_they_run) {
  const Movement m = moved(Collective::all_reduce, "ring", 3);
  EXPECT_EQ(m.actions[m.messages.front().action].name, "recv_reduce_send");
  EXPECT_EQ(m.actions[m.messages.back().action].name, "recv");
}

struct Refused {
  Shape shape;
  std::string_view algorithm, why;
};
class Refusal : public ::testing::TestWithParam<Refused> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, Refusal,
    ::testing::Values(
        Refused{{Collective::all_reduce, 33}, "ring", "33 ranks cannot be drawn, only 1 to 32"},
        Refused{{Collective::all_reduce, 0}, "ring", "0 ranks cannot be drawn, only 1 to 32"},
        Refused{
            {Collective::broadcast, 4, Rank{4}}, "flat", "rank 4 cannot be the root of 4 ranks"},
        Refused{
            {Collective::broadcast, 1, Rank{-1}}, "flat", "rank -1 cannot be the root of 1 rank"},
        Refused{{Collective::all_reduce, 3},
                "hypercube",
                "all_reduce/hypercube does not support 3 ranks"}));

TEST_P(Refusal, says_what_is_wrong) {
  const Refused& refused = GetParam();
  const auto movement =
      movement_of(*find_algorithm(refused.shape.collective, refused.algorithm), refused.shape);
  EXPECT_EQ(movement.status().code(), Code::invalid_argument);
  EXPECT_EQ(movement.status().message(), refused.why);
}

TEST(Svg, escapes_what_xml_would_misread) {
  Movement m = moved(Collective::broadcast, "flat", 2);
  m.algorithm = "a<b> & \"c\"";
  const std::string svg = to_svg(m);
  EXPECT_EQ(XmlReader(svg).fault(), "");
  EXPECT_NE(svg.find("a&lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
}

TEST(Svg, marks_where_chunks_are_added_up) {
  const std::string svg = to_svg(moved(Collective::all_reduce, "ring", 4));
  EXPECT_EQ(count(svg, "<g class=\"reduce\">"), 12U);  // n - 1 rounds of n ranks
  EXPECT_EQ(count(svg, "<g class=\"recv\">"), 12U);
}

TEST(Text, has_a_line_for_each_message) {
  EXPECT_EQ(to_text(moved(Collective::broadcast, "binomial", 3)),
            "broadcast/binomial, 3 ranks, root 0: 1 round; the busiest rank sends 2 chunks, 2.00 "
            "times its input\n"
            "\n"
            "rank  before: chunks of ranks  after: chunks of ranks\n"
            "0     0 of 0                   0 of 0\n"
            "1     -                        0 of 0\n"
            "2     -                        0 of 0\n"
            "\n"
            "round  from  to  chunks  of ranks  the receiver's step\n"
            "1      0     1   0       0         recv\n"
            "1      0     2   0       0         recv\n");
}

TEST(Text, has_a_line_for_each_sum_of_what_came_before) {
  const std::string text = to_text(moved(Collective::all_reduce, "hypercube", 4));
  EXPECT_NE(text.find("\n1      -     0   0..1    0+1 0+2   reduce\n"), std::string::npos) << text;
}

TEST(XmlReader, finds_what_is_not_well_formed) {
  EXPECT_EQ(XmlReader("<a><b c=\"1\"/>x &lt; y</a>\n").fault(), "");
  for (const char* broken :
       {"", "<a>", "<a></b>", "<a/><b/>", "<a/>x", "<a b=c/>", "<a b=\"1\" b=\"2\"/>", "<a>&</a>",
        "<a b=\"&\"/>", "<a", "<a b=\"1/>"})
    EXPECT_NE(XmlReader(broken).fault(), "") << broken;
}

}  // namespace
}  // namespace anyccl::cli
