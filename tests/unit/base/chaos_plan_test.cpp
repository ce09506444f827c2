#include "base/chaos_plan.hpp"

#include <gtest/gtest.h>

#include <string>

namespace anyccl {
namespace {

TEST(ChaosPlan, is_empty_without_text) {
  const auto plan = ChaosPlan::parse("");
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->is_empty());
  EXPECT_TRUE(ChaosPlan::parse("seed=7")->is_empty());
}

TEST(ChaosPlan, has_what_is_named) {
  const auto plan = ChaosPlan::parse(
      "seed=7,delay=0.01:200us,partial=0.5,reorder=0.25,drop=1e-4,duplicate=1e-3,cut=1e-7,"
      "corrupt=1e-6,slow=10M,die=3");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->seed, 7U);
  EXPECT_EQ(plan->delay, 0.01);
  EXPECT_EQ(plan->delay_time, std::chrono::microseconds(200));
  EXPECT_EQ(plan->partial, 0.5);
  EXPECT_EQ(plan->reorder, 0.25);
  EXPECT_EQ(plan->drop, 1e-4);
  EXPECT_EQ(plan->duplicate, 1e-3);
  EXPECT_EQ(plan->cut, 1e-7);
  EXPECT_EQ(plan->corrupt, 1e-6);
  EXPECT_EQ(plan->slow, 10U << 20);
  EXPECT_EQ(plan->die, 3U);
  EXPECT_FALSE(plan->is_empty());
}

TEST(ChaosPlan, knows_three_units_of_time) {
  EXPECT_EQ(ChaosPlan::parse("delay=1:1.5ms")->delay_time, std::chrono::microseconds(1500));
  EXPECT_EQ(ChaosPlan::parse("delay=1:2s")->delay_time, std::chrono::seconds(2));
}

TEST(ChaosPlan, says_what_is_wrong) {
  for (const auto& [text, problem] :
       {std::pair{"lag=1", "'lag' is not one of seed, die, slow, delay, partial"},
        {"drop=2", "drop=2 is not a probability from 0 to 1"},
        {"drop=", "drop= is not a probability"},
        {"cut=nan", "cut=nan is not a probability"},
        {"delay=0.1", "'' is not how long a delay takes"},
        {"delay=0.1:5", "'5' is not how long a delay takes"},
        {"delay=0.1:-5s", "'-5s' is not how long a delay takes"},
        {"delay=0.1:2e9s", "'2e9s' is not how long a delay takes"},
        {"die=-1", "die=-1 is not a number"},
        {"seed=x", "seed=x is not a number"},
        {"slow=fast", "fast"},
        {"drop=0.1,,cut=0", "'' is not one of"}}) {
    const auto plan = ChaosPlan::parse(text);
    ASSERT_FALSE(plan.ok()) << text;
    EXPECT_NE(plan.status().message().find(problem), std::string::npos) << plan.status().message();
  }
}

}  // namespace
}  // namespace anyccl
