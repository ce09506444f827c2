// What schedules become when they are lowered.

#include <gtest/gtest.h>

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"
#include "algorithm/plan/plan.hpp"
#include "algorithm/schedule/print.hpp"

namespace anyccl {
namespace {

std::vector<Plan> plans(Collective collective, std::string_view name, Shape shape) {
  const Algorithm* a = find_algorithm(collective, name);
  shape.collective = collective;
  auto result = lower_all(build_all(*a, shape), 8);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *result;
}

TEST(Lower, ring_steps_receive_reduce_and_send_at_once) {
  const Plan ring = plans(Collective::all_reduce, "ring", {.size = 4})[0];
  std::vector<int> flags;
  for (const PlanStep& s : ring.steps) flags.push_back(s.flags & ~PlanStep::lendable);
  constexpr int publish = PlanStep::publish, store = PlanStep::store, combine = PlanStep::combine;
  EXPECT_EQ(flags,
            (std::vector<int>{publish, combine | publish, combine | publish,
                              combine | store | publish, store | publish, store | publish, store}));
}

TEST(Lower, catalog_lowers) {
  for (const Algorithm* a : all_algorithms())
    for (int n = 1; n <= 9; ++n) {
      const Shape shape{a->collective, n};
      const auto ranks = build_all(*a, shape);
      const auto result = lower_all(ranks, 8);
      ASSERT_TRUE(result.ok()) << id(*a) << " " << n << ": " << result.status().message();
    }
}

}  // namespace
}  // namespace anyccl
