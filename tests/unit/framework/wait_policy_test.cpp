#include "framework/waiting/wait_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Time = WaitPolicy::Duration;
using How = WaitStep::How;
constexpr std::uint32_t kKind = 7;
constexpr Time kWakeUp = 40us, kOversleep = 50us;  // as on Linux

/// What one wait cost.
struct Cost {
  Time awake{0};  ///< The thread had a core.
  Time late{0};   ///< From the arrival until the thread saw it.
};

/// A wait for something that arrives after `arrival`, on a simulated clock.
Cost wait(WaitPolicy& policy, Time arrival, std::uint32_t kind = kKind) {
  Cost cost;
  Time now = 0ns;
  bool slept = false;
  while (now < arrival) {
    const WaitStep step = policy.step(kind, now);
    slept = step.how == How::sleep;
    if (!slept) {
      now += 1us;
      cost.awake += 1us;
      continue;
    }
    const Time alarm = now + (step.until_expected > 0ns ? step.until_expected : Time(20ms));
    if (arrival <= alarm) {
      now = arrival + kWakeUp;
    } else {
      now = alarm + kOversleep;
      if (step.until_expected > 0ns) WaitPolicy::note_oversleep(kOversleep);
    }
  }
  cost.late = now - arrival;
  policy.learn(kind, now, slept);
  return cost;
}

/// `mean`, give or take up to `part` of it.
std::vector<Time> jittered(Time mean, double part, int count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> spread(1 - part, 1 + part);
  std::vector<Time> times;
  for (int i = 0; i < count; ++i)
    times.push_back(
        Time(static_cast<Time::rep>(static_cast<double>(mean.count()) * spread(random))));
  return times;
}

Time median_lateness(WaitPolicy& policy, const std::vector<Time>& arrivals) {
  std::vector<Time> late;
  for (const Time arrival : arrivals) late.push_back(wait(policy, arrival).late);
  std::sort(late.begin(), late.end());
  return late[late.size() / 2];
}

/// The part of the time that the thread had a core.
double awake_part(WaitPolicy& policy, const std::vector<Time>& arrivals) {
  Time awake{0}, all{0};
  for (const Time arrival : arrivals) {
    awake += wait(policy, arrival).awake;
    all += arrival;
  }
  return static_cast<double>(awake.count()) / static_cast<double>(all.count());
}

TEST(WaitPolicy, spins_away_short_waits) {
  WaitPolicy policy;
  for (const Time arrival : jittered(100us, 0.5, 100)) {
    const Cost cost = wait(policy, arrival);
    EXPECT_LE(cost.late, 1us);
  }
}

TEST(WaitPolicy, sleeps_until_a_step_is_almost_over) {
  for (const Time step : {Time(5ms), Time(10ms), Time(18ms), Time(100ms)}) {
    WaitPolicy policy;
    wait(policy, step), wait(policy, step), wait(policy, step), wait(policy, step);
    const auto arrivals = jittered(step, 0.001, 200);
    EXPECT_LE(median_lateness(policy, arrivals), 1us) << step.count() << " ns";
    EXPECT_LE(awake_part(policy, arrivals), 0.06) << step.count() << " ns";
  }
}

TEST(WaitPolicy, costs_little_however_long_waits_vary) {
  std::vector<std::vector<Time>> series{jittered(10ms, 0.75, 500), jittered(3ms, 0.3, 500)};
  auto& alternating = series.emplace_back();
  for (int i = 0; i < 500; ++i) alternating.push_back(i % 2 == 0 ? 3ms : 30ms);
  auto& drifting = series.emplace_back();
  for (int i = 0; i < 500; ++i) drifting.push_back(3ms + i * 37us);
  auto& falling = series.emplace_back();
  for (int i = 0; i < 500; ++i) falling.push_back(40ms - i * 70us);
  for (const auto& arrivals : series) {
    WaitPolicy policy;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      const Cost cost = wait(policy, arrivals[i]);
      EXPECT_LE(cost.late, kWakeUp + kOversleep) << arrivals[i].count() << " ns";
      if (i < 4) continue;
      EXPECT_LE(cost.awake, 201us + arrivals[i] / 12) << arrivals[i].count() << " ns";
    }
  }
}

TEST(WaitPolicy, is_not_misled_by_one_long_wait) {
  WaitPolicy policy;
  for (int i = 0; i < 10; ++i) wait(policy, 10ms);
  wait(policy, 5s);
  EXPECT_LE(wait(policy, 10ms).late, 1us);
}

TEST(WaitPolicy, follows_a_change_of_pace) {
  WaitPolicy policy;
  for (int i = 0; i < 10; ++i) wait(policy, 10ms);
  for (int i = 0; i < 5; ++i) wait(policy, 50ms);
  EXPECT_LE(wait(policy, 50ms).late, 1us);
}

TEST(WaitPolicy, keeps_kinds_apart) {
  WaitPolicy policy;
  for (int i = 0; i < 10; ++i) wait(policy, 10ms, 1), wait(policy, 30ms, 2);
  EXPECT_LE(wait(policy, 10ms, 1).late, 1us);
  EXPECT_LE(wait(policy, 30ms, 2).late, 1us);
}

TEST(WaitPolicy, never_sleeps_for_latency) {
  WaitPolicy policy(WaitMode::latency);
  for (int i = 0; i < 10; ++i) {
    const Cost cost = wait(policy, 50ms);
    EXPECT_EQ(cost.awake, 50ms);
  }
}

TEST(WaitPolicy, is_awake_for_microseconds_only_with_thrift) {
  WaitPolicy policy(WaitMode::thrift);
  for (int i = 0; i < 10; ++i) EXPECT_LE(wait(policy, 50ms).awake, 21us);
}

}  // namespace
}  // namespace anyccl::test
