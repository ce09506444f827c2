#include <algorithm>
#include <map>
#include <set>

#include "plan/overlap.hpp"
#include "plan_support.hpp"

namespace anyccl::cli {
namespace {

using Kind = PipelineSchedule::Kind;

double end_s(const std::vector<PipelineSpan>& spans) {
  double end = 0;
  for (const PipelineSpan& span : spans) end = std::max(end, span.end_s);
  return end;
}

struct Case {
  PipelineSchedule schedule;
  int stages, micro_batches;
  double time;  ///< Forward 1, backward 2; 0: not known beforehand.
};
const Case kCases[] = {{{Kind::gpipe, 1}, 4, 8, 33},
                       {{Kind::one_f_one_b, 1}, 4, 8, 33},
                       {{Kind::interleaved, 2}, 4, 8, 28.5},
                       {{Kind::interleaved, 4}, 4, 8, 26.25},
                       {{Kind::one_f_one_b, 1}, 8, 64, 213},
                       {{Kind::interleaved, 2}, 8, 64, 202.5},
                       {{Kind::interleaved, 4}, 8, 64, 197.25},
                       {{Kind::one_f_one_b, 1}, 16, 32, 141},
                       {{Kind::interleaved, 2}, 16, 32, 118.5},
                       {{Kind::interleaved, 4}, 16, 32, 107.25},
                       {{Kind::one_f_one_b, 1}, 4, 2, 0},
                       {{Kind::gpipe, 1}, 4, 1, 0},
                       {{Kind::interleaved, 3}, 4, 4, 0}};

class Pipeline : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Pipeline, ::testing::ValuesIn(kCases));

TEST_P(Pipeline, takes_as_long_simulated_as_by_the_formula) {
  const Case& c = GetParam();
  const double formula =
      c.micro_batches * 3 + bubble_s(c.schedule, c.stages, c.micro_batches, {1, 2});
  EXPECT_NEAR(end_s(pipeline_trace(c.schedule, c.stages, c.micro_batches, {1, 2})), formula, 1e-9);
  if (c.time > 0) {
    EXPECT_DOUBLE_EQ(formula, c.time);
  }
}

TEST_P(Pipeline, does_every_chunk_of_every_micro_batch_once_in_each_direction) {
  const Case& c = GetParam();
  std::set<std::tuple<int, int, int, bool>> done;
  for (const PipelineSpan& s : pipeline_trace(c.schedule, c.stages, c.micro_batches, {1, 2}))
    EXPECT_TRUE(done.insert({s.stage, s.chunk, s.micro_batch, s.backward}).second);
  EXPECT_EQ(done.size(),
            static_cast<std::size_t>(2 * c.stages * c.schedule.chunks * c.micro_batches));
}

TEST_P(Pipeline, does_one_thing_at_a_time_on_a_stage) {
  const Case& c = GetParam();
  std::map<int, double> free;
  for (const PipelineSpan& s : pipeline_trace(c.schedule, c.stages, c.micro_batches, {1, 2})) {
    EXPECT_GE(s.begin_s, free[s.stage]);
    free[s.stage] = s.end_s;
  }
}

TEST_P(Pipeline, holds_as_many_micro_batches_simulated_as_by_the_formula) {
  const Case& c = GetParam();
  double held = 0, most = 0;
  for (const PipelineSpan& s : pipeline_trace(c.schedule, c.stages, c.micro_batches, {1, 2}))
    if (s.stage == 0) most = std::max(most, held += (s.backward ? -1.0 : 1.0) / c.schedule.chunks);
  EXPECT_NEAR(most, held_micro_batches(c.schedule, c.stages, c.micro_batches), 1e-9);
}

// DeepSeek-V3 Technical Report, 2024, table 2, for 16 stages with weight gradients of time 1.
TEST(PipelineBubble, of_zero_bubble_and_dual_pipe) {
  EXPECT_DOUBLE_EQ(bubble_s({Kind::one_f_one_b, 1}, 16, 32, {1, 2}), 45);
  EXPECT_DOUBLE_EQ(bubble_s({Kind::zero_bubble, 1}, 16, 32, {1, 2}), 15);
  EXPECT_DOUBLE_EQ(bubble_s({Kind::dual_pipe, 1}, 16, 32, {1, 2}), 14);
}

TEST(PipelineBubble, is_paid_by_a_second_version_of_the_weights) {
  EXPECT_EQ(bubble_s({Kind::two_bw, 1}, 16, 32, {1, 2}), 0);
  EXPECT_EQ(weight_copies({Kind::two_bw, 1}), 2);
  EXPECT_EQ(weight_copies({Kind::one_f_one_b, 1}), 1);
}

TEST(Schedules, survive_their_names) {
  for (const char* text : {"gpipe", "1f1b", "interleaved:3", "2bw", "zb", "dualpipe"}) {
    const Result<PipelineSchedule> schedule = parse_schedule(text);
    ASSERT_TRUE(schedule.ok()) << schedule.status().message();
    EXPECT_EQ(to_text(*schedule), text);
  }
  for (const char* text :
       {"", "1f1b:2", "interleaved", "interleaved:", "interleaved:1", "interleaved:2x"})
    EXPECT_FALSE(parse_schedule(text).ok()) << text;
}

// The course's example: 61 layers of 10 ms and 3 ms.
constexpr LayerTimes kCourse{61, 0.010, 0.003, 0.0002};

TEST(Overlap, hides_all_but_the_last_layers_communication) {
  EXPECT_DOUBLE_EQ(kCourse.serial_s(), 0.793);
  EXPECT_DOUBLE_EQ(kCourse.bound_s(), 0.610);
  EXPECT_DOUBLE_EQ(overlapped_s(kCourse, 1), 0.613);
  EXPECT_NEAR(kCourse.share(), 0.231, 0.0005);
}

TEST(Overlap, saves_latency_with_one_call_for_several_layers_and_pays_at_the_end) {
  for (const auto& [group, ms] :
       {std::pair{2, 613.0}, {4, 614.4}, {8, 624.2}, {16, 646.6}, {61, 781.0}})
    EXPECT_NEAR(1e3 * overlapped_s(kCourse, group), ms, 1e-6) << group << " layers";
}

TEST(Overlap, is_bound_by_communication_where_that_takes_longer) {
  const LayerTimes equal{61, 0.010, 0.010, 0};
  EXPECT_DOUBLE_EQ(equal.serial_s(), 1.220);
  EXPECT_DOUBLE_EQ(overlapped_s(equal, 1), 0.620);
  const LayerTimes slow{2, 0.001, 0.010, 0};
  EXPECT_DOUBLE_EQ(overlapped_s(slow, 1), 0.021);
}

}  // namespace
}  // namespace anyccl::cli
