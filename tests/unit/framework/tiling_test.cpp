#include "framework/collective/tiling.hpp"

#include <gtest/gtest.h>

#include "framework/membership/membership.hpp"
#include "framework/tuning/tuner.hpp"

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

TEST(Tiling, takes_short_tiles_where_one_rank_can_read_one_while_another_writes_the_next) {
  const auto tile = [](Collective collective, int ranks, std::size_t bytes, bool network = false) {
    return usual_tile({{.collective = collective, .size = ranks}, bytes, network});
  };
  constexpr std::size_t kShort = 32768, kMuch = 1 << 20;
  EXPECT_EQ(tile(Collective::reduce, 2, kMuch / 2), kShort);
  EXPECT_EQ(tile(Collective::reduce, 4, kMuch / 8), kShort);
  EXPECT_EQ(tile(Collective::broadcast, 2, kMuch / 2), kShort);
  EXPECT_EQ(tile(Collective::reduce, 2, kMuch), 2 * kShort);
  EXPECT_EQ(tile(Collective::broadcast, 2, kMuch), 2 * kShort) << "else it is less ahead";
  EXPECT_GT(tile(Collective::reduce, 8, kMuch / 2), 2 * kShort);
  EXPECT_GT(tile(Collective::reduce, 2, kMuch / 2, true), 2 * kShort);
  EXPECT_GT(tile(Collective::broadcast, 4, kMuch / 2), kShort);
  EXPECT_GT(tile(Collective::all_reduce, 2, kMuch / 2), 2 * kShort);
}

}  // namespace
}  // namespace anyccl
