#include "framework/collective/recent_calls.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace anyccl {
namespace {

CallKey key_of(std::size_t count) {
  return {{.collective = Collective::all_reduce, .dtype = DType::f32, .count = count}, Rank{0}};
}

/// Two calls that take turns must not drive each other out, whatever their hashes are.
TEST(RecentCalls, keeps_any_two_calls_that_take_turns) {
  constexpr std::size_t kCalls = 300;
  for (std::size_t a = 1; a <= kCalls; ++a)
    for (std::size_t b = a + 1; b <= kCalls; ++b) {
      RecentCalls recent;
      recent.add(key_of(a), std::make_shared<PreparedCall>());
      recent.add(key_of(b), std::make_shared<PreparedCall>());
      ASSERT_NE(recent.find(key_of(a)), nullptr) << a << " and " << b;
      ASSERT_NE(recent.find(key_of(b)), nullptr) << a << " and " << b;
    }
}

TEST(RecentCalls, keeps_what_is_used_and_drops_what_is_not) {
  RecentCalls recent;
  const auto used = std::make_shared<PreparedCall>();
  recent.add(key_of(0), used);
  std::size_t kept = 0;
  for (std::size_t count = 1; count <= 10000; ++count) {
    recent.add(key_of(count), std::make_shared<PreparedCall>());
    const auto* const found = recent.find(key_of(0));
    ASSERT_NE(found, nullptr) << "after " << count << " others";
    ASSERT_EQ(*found, used);
  }
  for (std::size_t count = 1; count <= 10000; ++count)
    if (recent.find(key_of(count)) != nullptr) ++kept;
  EXPECT_GT(kept, 100U);
  EXPECT_LT(kept, 1000U);
}

TEST(RecentCalls, drops_what_it_is_asked_to) {
  RecentCalls recent;
  auto large = std::make_shared<PreparedCall>();
  large->input_bytes = 100;
  recent.add(key_of(1), large);
  recent.add(key_of(2), std::make_shared<PreparedCall>());
  recent.drop_if([](const PreparedCall& prepared) { return prepared.input_bytes == 100; });
  EXPECT_EQ(recent.find(key_of(1)), nullptr);
  EXPECT_NE(recent.find(key_of(2)), nullptr);
  EXPECT_EQ(large.use_count(), 1);
}

}  // namespace
}  // namespace anyccl
