#include "framework/collective/routed_plan.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace anyccl {
namespace {

Geometry of_vector(std::size_t bytes, std::size_t tile_bytes) {
  return Geometry::of_vector({{Collective::all_reduce, 4}, 4}, bytes, tile_bytes);
}

TEST(Geometry, has_a_tile_at_least) {
  EXPECT_EQ(of_vector(0, 64).tiles(), 1U);
  EXPECT_EQ(of_vector(64, 64).tiles(), 1U);
  EXPECT_EQ(of_vector(65, 64).tiles(), 2U);
}

/// So that a call with too many is refused, and not begun with a few of them.
TEST(Geometry, that_would_have_more_tiles_than_can_be_counted_has_the_largest_number) {
  EXPECT_EQ(of_vector((std::size_t{1} << 32) * 64, 64).tiles(),
            std::numeric_limits<std::uint32_t>::max());
}

/// A broadcast by rank 0 to peers that are reached over so many transports.
Status made_with(int transports) {
  const Algorithm* const flat = find_algorithm(Collective::broadcast, "flat");
  std::vector<std::byte> places(static_cast<std::size_t>(transports));
  std::vector<Publications*> route = {nullptr};
  for (std::byte& place : places)  // which are compared only
    route.push_back(reinterpret_cast<Publications*>(&place));
  return make_routed_plan(*flat, {Collective::broadcast, transports + 1}, Rank{0}, route, 16)
      .status();
}

TEST(RoutedPlan, has_a_bound_of_transports) {
  EXPECT_TRUE(made_with(kMostRoutes).ok());
  EXPECT_EQ(made_with(kMostRoutes + 1).code(), Code::unsupported);
}

}  // namespace
}  // namespace anyccl
