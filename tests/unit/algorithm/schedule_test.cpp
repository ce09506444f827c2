// Contracts, builders and printing.

#include "algorithm/schedule/print.hpp"
#include "support.hpp"

namespace anyccl::verify {
namespace {

using Steps = std::vector<std::uint32_t>;

TEST(Contract, broadcast_has_an_input_only_at_the_root) {
  const Contract c({Collective::broadcast, 3, Rank{1}}, 2);
  EXPECT_EQ(c.chunks(Rank{1}, Space::input), 2U);
  EXPECT_EQ(c.chunks(Rank{0}, Space::input), 0U);
  EXPECT_EQ(c.chunks(Rank{0}, Space::output), 2U);
  EXPECT_EQ(c.contributor(1), Rank{1});
}

TEST(Contract, all_to_all_v_turns_rows_into_columns) {
  const Contract c({Collective::all_to_all_v, 3}, 2);
  EXPECT_EQ(c.origins(), 18U);
  const Origin from_1_to_2 = (1 * 3 + 2) * 2 + 1;  // its second part
  EXPECT_EQ(c.origin(Rank{1}, Space::input, 2 * 2 + 1), from_1_to_2);
  EXPECT_EQ(c.origin(Rank{2}, Space::output, 1 * 2 + 1), from_1_to_2);
  EXPECT_EQ(c.contributor(from_1_to_2), Rank{1});
  EXPECT_TRUE(c.knows_size(Rank{1}, from_1_to_2) && c.knows_size(Rank{2}, from_1_to_2));
  EXPECT_FALSE(c.knows_size(Rank{0}, from_1_to_2));
}

TEST(Contract, says_who_knows_the_sizes_of_a_v_form) {
  const Contract known({Collective::all_gather_v, 3}, 1);
  const Contract owner({Collective::scatter_v, 3, Rank{2}}, 1);
  EXPECT_FALSE(known.private_sizes());
  EXPECT_TRUE(owner.private_sizes());
  for (int r = 0; r < 3; ++r)
    for (Origin block = 0; block < 3; ++block) {
      EXPECT_TRUE(known.knows_size(Rank{r}, block));
      EXPECT_EQ(owner.knows_size(Rank{r}, block), r == 2 || block == uindex(Rank{r}));
      EXPECT_EQ(known.size_class(block), block) << "no two blocks are alike";
    }
  EXPECT_EQ(v_form(Collective::reduce_scatter), Collective::reduce_scatter_v);
}

TEST(Contract, point_to_point_is_not_scheduled) {
  EXPECT_TRUE(is_scheduled(Collective::barrier));
  EXPECT_FALSE(is_scheduled(Collective::send));
  EXPECT_FALSE(is_scheduled(Collective::recv));
  EXPECT_EQ(name(Collective::recv), "recv");
}

TEST(Builder, steps_wait_for_those_that_touch_the_same_chunks) {
  Builder b({Collective::all_reduce, 2}, Rank{0}, 2);
  const Slice first{Space::output, 0}, second{Space::output, 1}, both{Space::output, 0, 2};
  b.recv(Rank{1}, first).recv(Rank{1}, second).send(Rank{1}, both).recv(Rank{1}, first);
  const Schedule s = std::move(b).finish();
  EXPECT_EQ(s.steps[1].after, Steps{});
  EXPECT_EQ(s.steps[2].after, (Steps{0, 1}));
  EXPECT_EQ(s.steps[3].after, (Steps{0, 2}));
}

TEST(Builder, leaves_out_what_moves_nothing) {
  Builder b({Collective::all_reduce, 2, Rank{0}, true}, Rank{0}, 1);
  b.copy({Space::input}, {Space::output});  // in place: the same memory
  b.send(Rank{0}, {Space::input});
  EXPECT_TRUE(std::move(b).finish().steps.empty());
}

TEST(Builder, leaves_out_dependencies_and_nothing_else) {
  for (const Algorithm* algorithm : all_algorithms())
    for (int n = 1; n <= 9; ++n) {
      Shape shape{algorithm->collective, n};
      if (!algorithm->supports(shape)) continue;
      std::vector<Schedule> with = build_all(*algorithm, shape);
      shape.with_dependencies = false;
      const std::vector<Schedule> without = build_all(*algorithm, shape);
      for (std::size_t r = 0; r < with.size(); ++r) {
        for (Step& step : with[r].steps) step.after.clear();
        EXPECT_EQ(with[r].steps, without[r].steps) << id(*algorithm) << " on " << n << " ranks";
      }
    }
}

TEST(Builder, slices_of_input_and_output_are_circular) {
  Builder b({Collective::all_reduce, 2}, Rank{0}, 3);
  b.copy({Space::input, 2, 2}, {Space::output, 2, 2});
  const Schedule s = std::move(b).finish();
  EXPECT_EQ(s.access(s.steps[0]).reads, (Steps{0, 2}));
  EXPECT_TRUE(check_structure(s).ok());
}

TEST(Print, a_line_says_what_a_step_does) {
  const auto ring = built(Collective::all_reduce, "ring", 3);
  EXPECT_EQ(to_text(ring[1]),
            "all_reduce, rank 1 of 3: 3 chunks in, 3 out, 0 scratch\n"
            "  0 send         input[1] to 2\n"
            "  1 recv_reduce  output[0] = input[0] + from 0\n"
            "  2 send         output[0] to 2  (after 1)\n"
            "  3 recv_reduce  output[2] = input[2] + from 0\n"
            "  4 send         output[2] to 2  (after 3)\n"
            "  5 recv         output[1] = from 0\n"
            "  6 send         output[1] to 2  (after 5)\n"
            "  7 recv         output[0] = from 0  (after 1 2)\n");
}

TEST(Print, pieces_are_shown_one_by_one) {
  const std::string text = to_text(built(Collective::all_to_all_v, "direct", 3)[2]);
  EXPECT_NE(text.find("input[0] to 0, input[1] to 1"), std::string::npos) << text;
  EXPECT_NE(text.find("output[1] = from 1, output[0] = from 0"), std::string::npos) << text;
}

TEST(Print, rooted_collectives_name_their_root) {
  const std::string text = to_text(built(Collective::broadcast, "flat", 3)[2]);
  EXPECT_EQ(text.substr(0, text.find(':')), "broadcast, rank 2 of 3, root 0");
}

TEST(Catalog, finds_algorithms_by_collective_and_name) {
  const Algorithm* ring = find_algorithm(Collective::all_reduce, "ring");
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(id(*ring), "all_reduce/ring");
  EXPECT_EQ(find_algorithm(Collective::broadcast, "ring"), nullptr);
}

TEST(Catalog, has_an_algorithm_for_every_collective_and_shape) {
  for (Collective c : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all_v,
                       Collective::barrier}) {
    const auto all = all_algorithms();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [c](const Algorithm* a) {
      return a->collective == c && a->supports({c, 7, Rank{0}, false, {0, 0, 0, 1, 2, 2, 1}});
    })) << name(c);
  }
}

TEST(CheckAlgorithm, reports_what_it_counted) {
  const auto report = check_algorithm(*find_algorithm(Collective::all_reduce, "ring"), 3, 4);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->sizes.size(), 2U);
  EXPECT_EQ(report->sizes[1].size, 4);
  EXPECT_EQ(report->sizes[1].cost, (Cost{6, 6, 4, 3}));
  EXPECT_EQ(report->sizes[1].slots, 2U);
  EXPECT_EQ(report->shapes, 6U);
}

TEST(CheckAlgorithm, refuses_sizes_that_make_no_sense) {
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  EXPECT_EQ(check_algorithm(ring, 0, 4).status().code(), Code::invalid_argument);
  expect_words(check_algorithm(ring, 5, 4).status(), {"all_reduce/ring", "5 to 4"});
  expect_words(check_algorithm(ring, 1, 129).status(), {"128"});
}

using Named = std::pair<Collective, const char*>;
class Levels : public testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(Of, Levels,
                         testing::Values(Named{Collective::all_reduce, "two_level"},
                                         Named{Collective::all_reduce, "three_level"},
                                         Named{Collective::all_reduce, "single_leader"},
                                         Named{Collective::broadcast, "two_level"},
                                         Named{Collective::all_gather, "two_level"},
                                         Named{Collective::reduce_scatter, "two_level"}));

TEST_P(Levels, are_right_for_hosts_that_are_uneven_and_scattered) {
  const auto [collective, name] = GetParam();
  const Algorithm& a = *find_algorithm(collective, name);
  const std::vector<std::vector<int>> maps = {{0, 0, 0, 1, 2, 2},
                                              {2, 0, 1, 0, 2, 0},
                                              {0, 1, 2, 3},
                                              {0, 1, 1, 1, 1, 0, 1},
                                              {4, 4, 9, 9, 1, 9, 9, 9, 4, 4, 1, 1, 1}};
  for (const auto& hosts : maps)
    for (bool in_place : {false, true}) {
      const Shape shape{collective, static_cast<int>(hosts.size()), Rank{0}, in_place, hosts};
      const auto ranks = build_all(a, shape);
      Terms terms;
      const auto outcome = check(ranks, terms);
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      const auto slots = check_plans(ranks, *outcome, terms);
      ASSERT_TRUE(slots.ok()) << slots.status().message();
      EXPECT_LE(*slots, kLeastSlots);
    }
}

/// Chunks that cross from one host to another.
std::size_t crossing(Collective collective, std::string_view name, const std::vector<int>& hosts) {
  const Shape shape{collective, static_cast<int>(hosts.size()), Rank{0}, false, hosts};
  std::size_t chunks = 0;
  for (const Schedule& s : build_all(*find_algorithm(collective, name), shape))
    for (const Step& step : s.steps)
      for (const Rank peer : step.peers)
        if (step.op == Op::send && hosts[uindex(peer)] != hosts[uindex(s.rank)])
          chunks += step.src.count;
  return chunks;
}

TEST(TwoLevels, cross_to_each_host_with_no_more_than_it_needs) {
  for (const std::vector<int>& hosts :
       {std::vector{0, 0, 0, 1, 2, 2}, std::vector{2, 0, 1, 0, 2, 0}}) {
    EXPECT_EQ(crossing(Collective::broadcast, "two_level", hosts), 2U);
    EXPECT_EQ(crossing(Collective::all_gather, "two_level", hosts), 6U * 2);
    EXPECT_EQ(crossing(Collective::reduce_scatter, "two_level", hosts), 6U * 2);
    EXPECT_EQ(crossing(Collective::all_reduce, "single_leader", hosts), 3U * 2);
  }
}

}  // namespace
}  // namespace anyccl::verify
