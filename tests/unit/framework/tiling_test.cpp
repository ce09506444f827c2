#include "framework/collective/tiling.hpp"

#include <gtest/gtest.h>

#include "framework/membership/membership.hpp"

namespace anyccl {
namespace {

TEST(Tiling, has_a_tile_in_flight_even_if_that_needs_more_slots_than_there_are) {
  std::byte place{};  // which is not used
  for (const Algorithm* const algorithm : all_algorithms())
    for (const int ranks : {2, 6, 7, 12}) {
      const Shape shape{algorithm->collective, ranks, Rank{0}, false, {}};
      if (!algorithm->supports(shape)) continue;
      const std::vector<Publications*> route(static_cast<std::size_t>(ranks),
                                             reinterpret_cast<Publications*>(&place));
      const auto routed = make_routed_plan(*algorithm, shape, Rank{0}, route, slots_for(ranks));
      ASSERT_TRUE(routed.ok()) << routed.status().message();
      for (const bool network : {false, true}) {
        const Tiling tiling =
            choose_tiling(**routed, {slots_for(ranks), 1 << 20, 1, network}, 4096);
        EXPECT_GE(tiling.lanes, 1U) << id(*algorithm) << " on " << ranks << " ranks";
      }
    }
}

}  // namespace
}  // namespace anyccl
