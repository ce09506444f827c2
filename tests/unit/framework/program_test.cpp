#include "framework/program.hpp"

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

}  // namespace
}  // namespace anyccl
