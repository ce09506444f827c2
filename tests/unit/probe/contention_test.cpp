#include "platform/probe/contention.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "platform/probe/oversubscription.hpp"

namespace anyccl::probe {
namespace {

using namespace std::chrono_literals;

struct ContentionOfPreemptions : testing::Test {
  OversubscriptionMonitor ranks;
  Contention contention{ranks};
  Contention::Clock::time_point now{1000s};
  void preempt_twice() {
    contention.note_preemption(now);
    contention.note_preemption(now += 10ms);
  }
};

TEST_F(ContentionOfPreemptions, is_noticed_if_there_are_two_within_a_short_time) {
  contention.note_preemption(now);
  EXPECT_FALSE(contention.is_noticed());
  contention.note_preemption(now += 150ms);
  EXPECT_FALSE(contention.is_noticed());
  contention.note_preemption(now += 50ms);
  EXPECT_TRUE(contention.is_noticed());
}

TEST_F(ContentionOfPreemptions, is_forgotten_later_each_time_it_goes_on) {
  const auto is_forgotten_after = [&](Contention::Clock::duration time) {
    contention.expire(now + time - 1ms);
    EXPECT_TRUE(contention.is_noticed());
    contention.expire(now += time);
    return !contention.is_noticed();
  };
  for (const auto time : {500ms, 1000ms, 2000ms, 2000ms}) {
    preempt_twice();
    EXPECT_TRUE(is_forgotten_after(time));
  }
  now += 1s;
  preempt_twice();
  EXPECT_TRUE(is_forgotten_after(500ms)) << "there was none for a while";
}

TEST(Contention, counts_threads_that_want_a_core) {
  EXPECT_EQ(count_runnable("0.20 0.18 0.12 13/802 11206\n"), 13);
  EXPECT_EQ(count_runnable(""), 0);
  EXPECT_EQ(count_runnable("nonsense"), 0);
}

TEST(Contention, is_noticed_by_a_thread_that_yields_to_strangers) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // inherited
  std::atomic<bool> over{false};
  std::vector<std::thread> strangers;
  for (int i = 0; i < 2; ++i)
    strangers.emplace_back([&] {
      while (!over.load(std::memory_order_relaxed)) {
      }
    });
  OversubscriptionMonitor ranks;  // it has counted none
  Contention contention(ranks);
  while (!contention.is_noticed()) contention.yield();
  over.store(true);
  for (std::thread& stranger : strangers) stranger.join();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace anyccl::probe
