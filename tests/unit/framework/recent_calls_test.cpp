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

/// More room must lose nothing.
TEST(RecentCalls, keeps_as_many_calls_as_a_set_holds_whatever_they_are) {
  constexpr std::size_t kWays = 4;
  for (std::size_t first = 1; first <= 1000; ++first) {
    RecentCalls recent;
    for (std::size_t i = 0; i < kWays; ++i)
      recent.add(key_of(first + 7 * i), std::make_shared<PreparedCall>());
    for (std::size_t i = 0; i < kWays; ++i)
      ASSERT_NE(recent.find(key_of(first + 7 * i)), nullptr) << first << " and " << i;
  }
}

TEST(RecentCalls, finds_each_as_it_was_after_there_are_more_sets) {
  RecentCalls recent;
  std::vector<std::shared_ptr<const PreparedCall>> made;
  for (std::size_t count = 1; count <= 40; ++count) {
    made.push_back(std::make_shared<PreparedCall>());
    recent.add(key_of(count), made.back());
  }
  std::size_t found = 0;
  for (std::size_t count = 1; count <= 40; ++count)
    if (const auto* const known = recent.find(key_of(count)); known != nullptr) {
      ++found;
      ASSERT_EQ(*known, made[count - 1]) << count;
    }
  EXPECT_GT(found, 35U);
}

/// As of an operator whose number means another one now.
TEST(RecentCalls, keeps_one_of_each_key) {
  RecentCalls recent;
  std::shared_ptr<const PreparedCall> newest;
  for (int i = 0; i < 100; ++i) {
    newest = std::make_shared<PreparedCall>();
    recent.add(key_of(1), newest);
  }
  int kept = 0;
  recent.drop_if([&](const PreparedCall& prepared) {
    EXPECT_EQ(&prepared, newest.get());
    ++kept;
    return false;
  });
  EXPECT_EQ(kept, 1);
}

TEST(RecentCalls, drops_what_it_is_asked_to) {
  RecentCalls recent;
  auto large = std::make_shared<PreparedCall>();
  large->bytes.input = 100;
  recent.add(key_of(1), large);
  recent.add(key_of(2), std::make_shared<PreparedCall>());
  recent.drop_if([](const PreparedCall& prepared) { return prepared.bytes.input == 100; });
  EXPECT_EQ(recent.find(key_of(1)), nullptr);
  EXPECT_NE(recent.find(key_of(2)), nullptr);
  EXPECT_EQ(large.use_count(), 1);
}

}  // namespace
}  // namespace anyccl
