#include "base/condition.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;

TEST(Condition, waits_until_its_limit) {
  Condition condition;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  const auto begin = Condition::Clock::now();
  EXPECT_FALSE(condition.wait_for(lock, 30ms, [] { return false; }));
  EXPECT_GE(Condition::Clock::now() - begin, 30ms);
  EXPECT_LT(Condition::Clock::now() - begin, 60s);
}

TEST(Condition, is_met_before_its_limit_however_long) {
  Condition condition;
  std::mutex mutex;
  bool is_met = false;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    is_met = true;
    condition.notify_all();
  });
  std::unique_lock lock(mutex);
  EXPECT_TRUE(condition.wait_for(lock, std::chrono::milliseconds::max(), [&] { return is_met; }));
  lock.unlock();
  other.join();
}

TEST(Condition, has_no_limit_without_one) {
  Condition condition;
  std::mutex mutex;
  int turns = 0;
  std::thread other([&] {
    std::unique_lock lock(mutex);
    ++turns;
    condition.notify_one();
    condition.wait(lock, [&] { return turns == 2; });
  });
  std::unique_lock lock(mutex);
  condition.wait(lock, [&] { return turns == 1; });
  ++turns;
  condition.notify_one();
  lock.unlock();
  other.join();
}

}  // namespace
}  // namespace anyccl::test
