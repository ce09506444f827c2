#include "framework/call/recorder.hpp"

#include <gtest/gtest.h>

namespace anyccl {
namespace {

Call send_to(std::int32_t rank) {
  Call call;
  call.collective = Collective::send;
  call.root = Rank{rank};
  return call;
}

TEST(Recorder, keeps_the_last_operations) {
  Recorder recorder(3);  // which is rounded up
  for (std::int32_t i = 1; i <= 6; ++i) recorder.add(send_to(i), RecordState::issued, {});
  EXPECT_EQ(recorder.last(), 6U);
  for (std::uint64_t number = 1; number <= 7; ++number)
    EXPECT_EQ(recorder.keeps(number), number >= 3 && number <= 6) << number;
  EXPECT_EQ(recorder.first(), 3U);
  EXPECT_EQ(recorder[3].root, Rank{3});
  EXPECT_EQ(recorder[6].root, Rank{6});
}

TEST(Recorder, does_not_touch_another_record_when_an_old_operation_ends) {
  Recorder recorder(2);
  const std::uint64_t old = recorder.add(send_to(1), RecordState::running, {});
  recorder.add(send_to(2), RecordState::running, {});
  recorder.add(send_to(3), RecordState::running, {});
  recorder.start(old);
  recorder.end(old, false);
  EXPECT_EQ(recorder[3].state, RecordState::running);
  EXPECT_EQ(recorder[3].ended, 0U);
}

TEST(Recorder, has_the_times_of_each_state_in_order) {
  Recorder recorder(2);
  const std::uint64_t number = recorder.add(send_to(1), RecordState::issued, {});
  EXPECT_EQ(recorder[number].started, 0U);
  recorder.start(number);
  recorder.end(number, true);
  const RecordedCall& call = recorder[number];
  EXPECT_EQ(call.state, RecordState::done);
  EXPECT_LE(call.issued, call.started);
  EXPECT_LE(call.started, call.ended);
}

TEST(Recorder, of_a_trace_has_the_duration_of_a_call_that_it_hears_of_at_its_end) {
  for (const bool is_traced : {false, true}) {
    Recorder recorder(2, is_traced);
    const std::uint64_t begin = recorder.begin(), before = recorder.clock().ticks();
    const RecordedCall& call =
        recorder[recorder.add(send_to(1), RecordState::done, {.blocks = true, .began = begin})];
    EXPECT_EQ(call.issued <= before, is_traced);
    EXPECT_EQ(call.ended > call.issued, is_traced);
  }
}

TEST(Recorder, knows_when_a_thread_began_to_wait) {
  Recorder recorder(4);
  const std::uint64_t issued = recorder.add(send_to(1), RecordState::running, {});
  EXPECT_EQ(recorder[issued].awaited, RecordedCall::kNever);
  recorder.await(issued, recorder[issued].issued + 1000);
  EXPECT_EQ(recorder[issued].awaited, 1000);
  const std::uint64_t blocking = recorder.add(send_to(1), RecordState::running, {.blocks = true});
  EXPECT_EQ(recorder[blocking].awaited, 0);
}

TEST(Recorder, without_entries_only_counts) {
  Recorder recorder(0);
  const std::uint64_t number = recorder.add(send_to(1), RecordState::issued, {});
  recorder.start(number);
  recorder.end(number, true);
  EXPECT_EQ(recorder.last(), 1U);
  EXPECT_FALSE(recorder.keeps(1));
  EXPECT_GT(recorder.first(), recorder.last());
}

TEST(Recorder, sums_up_all_operations_also_those_that_it_has_forgotten) {
  for (const std::size_t entries : {2U, 64U, 128U}) {
    Recorder recorder(entries);
    constexpr std::uint64_t kCalls = 1000;
    for (std::uint64_t i = 1; i <= kCalls; ++i) {
      Call call = send_to(1);
      call.count = 2;
      if (i % 4 == 0) call.collective = Collective::recv;
      recorder.end(recorder.add(call, RecordState::running, {}), i % 5 != 0);
      const CallTotals totals = recorder.totals();
      std::uint64_t calls = 0, failed = 0, bytes = 0;
      for (const CallTotals::Row& row : totals.rows()) {
        calls += row.calls;
        failed += row.failed;
        bytes += row.bytes;
      }
      ASSERT_EQ(calls, i) << entries;
      ASSERT_EQ(failed, i / 5) << entries;
      ASSERT_EQ(bytes, i * 2 * sizeof(float)) << entries;
    }
    ASSERT_EQ(recorder.totals().rows().size(), 2U);
    EXPECT_EQ(recorder.totals().rows()[0].calls, kCalls * 3 / 4);
    EXPECT_GT(recorder.totals().rows()[0].ticks, 0U);
  }
}

TEST(Recorder, gives_copies_of_what_it_keeps) {
  Recorder recorder(4);
  for (std::int32_t i = 1; i <= 6; ++i) recorder.add(send_to(i), RecordState::issued, {});
  const RecordedCalls copy = recorder.copy();
  EXPECT_EQ(copy.first, 3U);
  ASSERT_EQ(copy.calls.size(), 4U);
  EXPECT_EQ(copy.calls[0].root, Rank{3});
  EXPECT_TRUE(Recorder(0).copy().calls.empty());
}

TEST(TickClock, shows_the_monotonic_time_of_its_ticks) {
  const TickClock clock;
  const std::int64_t before = TickClock::monotonic_ns();
  const std::uint64_t ticks = clock.ticks();
  const std::int64_t after = TickClock::monotonic_ns();
  constexpr std::int64_t kAllowed = 1'000'000;
  std::int64_t now = after;
  while (now - before < 20 * kAllowed) now = TickClock::monotonic_ns();  // the scale grows exact
  const std::int64_t at = clock.scale().ns_at(ticks);
  EXPECT_GE(at, before - kAllowed);
  EXPECT_LE(at, after + kAllowed);
}

}  // namespace
}  // namespace anyccl
