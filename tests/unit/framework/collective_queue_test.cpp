// These tests make a rank's queue of collectives go on, one step of one rank at a time.

#include "framework/queue/collective_queue.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "support/ranks.hpp"
#include "unit/framework/board.hpp"

namespace anyccl::test {
namespace {

using Added = std::shared_ptr<Operation>;

/// The queue of one rank, with everything that it borrows.
struct QueueOfRank {
  explicit QueueOfRank(Membership m) : me(std::move(m)) {}

  Added add(const Call& call, Gate gate = Gate::open) {
    return *queue.add(call, CallKey(call, me.rank), gate);
  }
  Execution& run_alone(const Call& call) {
    const auto plan = *queue.plans().find(call, CallKey(call, me.rank));
    return queue.run_alone(*plan, call);
  }
  Added add_again(std::shared_ptr<QueuedCollective>& again, const Call& call) {
    const CallKey key(call, me.rank);
    return *queue.add_again(again, call, key, *queue.plans().plan(call, key), Gate::open);
  }
  Status go_on() {
    bool moved = false;
    return queue.advance(moved);
  }

  Membership me;
  Routes routes{me.transports, me.size};
  CommRecords records{me, routes};
  MessageMatcher messages{me.rank, routes.messages_to};
  Diagnosis diagnosis{me, routes, messages};
  CollectiveQueue queue{me, routes, records, diagnosis};
};

/// The only rank there is: whatever may start is done when it goes on.
struct QueueOfOne : testing::Test {
  Board board;
  QueueOfRank one{member_of(board, Rank{0}, 1)};
  std::array<float, 4> a{1, 2, 3, 4}, b{}, c{};
};

/// Both ranks of a communicator of two.
struct QueueOfTwo : testing::Test {
  /// Both go on until neither can without the other.
  void go_on() {
    for (int i = 0; i < 4; ++i)
      for (QueueOfRank* rank : {&mine, &other}) ASSERT_OK(rank->go_on());
  }
  void verify_each(std::uint64_t nth) { mine.me.verify.each = other.me.verify.each = nth; }

  Board board;
  QueueOfRank mine{member_of(board, Rank{0}, 2)}, other{member_of(board, Rank{1}, 2)};
  std::array<float, 4> in{1, 2, 3, 4}, out{}, others_in{10, 20, 30, 40}, others_out{};
  const std::array<float, 4> sum{11, 22, 33, 44};
  const Call call = sum_of(in, out), others_call = sum_of(others_in, others_out);
};

TEST_F(QueueOfOne, starts_nothing_behind_a_closed_gate) {
  const Added closed = one.add(sum_of(a, b), Gate::closed), behind = one.add(sum_of(a, c));
  ASSERT_OK(one.go_on());
  EXPECT_FALSE(closed->done());
  EXPECT_FALSE(behind->done());
  EXPECT_EQ(one.queue.running(), nullptr);
}

TEST_F(QueueOfOne, keeps_the_order_of_the_calls_when_a_gate_opens) {
  const Added closed = one.add(sum_of(a, b), Gate::closed), behind = one.add(sum_of(b, c));
  ASSERT_OK(one.go_on());
  closed->open();
  ASSERT_OK(one.go_on());
  EXPECT_TRUE(closed->done());
  EXPECT_TRUE(behind->done());
  EXPECT_EQ(c, a) << "the second call reads what the first one has written";
}

TEST_F(QueueOfOne, counts_as_completed_what_is_not_open) {
  const Added closed = one.add(sum_of(a, b), Gate::closed);
  one.add(sum_of(a, c));
  EXPECT_EQ(one.queue.sequence(), 2U);
  EXPECT_EQ(one.queue.count_completed(), 0U);
  closed->open();
  ASSERT_OK(one.go_on());
  EXPECT_EQ(one.queue.count_completed(), 2U);
}

TEST_F(QueueOfOne, repeats_a_call_in_the_object_that_nobody_else_has) {
  std::shared_ptr<QueuedCollective> again;
  one.add_again(again, sum_of(a, b));
  ASSERT_OK(one.go_on());
  const QueuedCollective* const first = again.get();
  a[0] = 5;
  const Added second = one.add_again(again, sum_of(a, b));
  EXPECT_EQ(again.get(), first);
  EXPECT_FALSE(second->done()) << "it has a place, and has not run yet";
  ASSERT_OK(one.go_on());
  EXPECT_TRUE(second->done());
  EXPECT_EQ(b, a);
}

TEST_F(QueueOfOne, repeats_a_call_in_a_new_object_if_somebody_has_the_last_one) {
  std::shared_ptr<QueuedCollective> again;
  const Added first = one.add_again(again, sum_of(a, b));
  ASSERT_OK(one.go_on());
  const Added second = one.add_again(again, sum_of(a, b));
  EXPECT_NE(second, first);
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(second->done());
}

TEST_F(QueueOfOne, completes_everything_when_it_ends) {
  const Added first = one.add(sum_of(a, b), Gate::closed), second = one.add(sum_of(a, c));
  one.queue.end(Status(Code::aborted, "enough"));
  for (const Added& ended : {first, second}) {
    ASSERT_TRUE(ended->done());
    EXPECT_EQ(ended->status().message(), "enough");
  }
  EXPECT_TRUE(one.queue.empty());
}

TEST_F(QueueOfTwo, lets_what_runs_alone_join_with_its_place) {
  EXPECT_FALSE(mine.run_alone(call).done());
  const Added joined = mine.queue.queue_alone();
  const Added behind = mine.add(call);
  EXPECT_EQ(mine.queue.running(), joined.get());
  EXPECT_EQ(mine.queue.running()->sequence(), 1U);
  EXPECT_EQ(mine.queue.running_alone(), nullptr);
  other.add(others_call);
  other.add(others_call);
  go_on();
  EXPECT_TRUE(joined->done());
  EXPECT_TRUE(behind->done());
}

TEST_F(QueueOfTwo, lets_what_runs_alone_join_with_its_scratch) {
  for (QueueOfRank* rank : {&mine, &other})  // adds up a copy of what lies in its place
    rank->me.policy.environment.algorithms = *AlgorithmRules::parse("tree_doubling");
  EXPECT_FALSE(mine.run_alone(sum_of(in, in)).done());
  const std::size_t bytes = mine.queue.memory_bytes();
  EXPECT_GT(bytes, 0U);
  const Added joined = mine.queue.queue_alone();
  EXPECT_EQ(mine.queue.memory_bytes(), bytes);
  other.add(others_call);
  go_on();
  ASSERT_TRUE(joined->done());
  EXPECT_EQ(in, sum);
  EXPECT_EQ(mine.queue.memory_bytes(), 0U) << "it has gone with the collective";
}

TEST_F(QueueOfTwo, does_not_count_as_completed_what_runs_alone) {
  Execution& alone = mine.run_alone(call);
  EXPECT_EQ(mine.queue.running_alone(), &alone);
  EXPECT_EQ(mine.queue.count_completed(), 0U);
  other.add(others_call);
  ASSERT_OK(other.go_on());
  alone.advance();
  ASSERT_TRUE(alone.done());
  EXPECT_EQ(mine.queue.running_alone(), nullptr);
  EXPECT_EQ(mine.queue.count_completed(), 1U);
}

TEST_F(QueueOfTwo, completes_what_runs_alone_when_it_ends) {
  const Execution& alone = mine.run_alone(call);
  mine.queue.end(Status(Code::aborted, "enough"));
  ASSERT_TRUE(alone.done());
  EXPECT_EQ(alone.status().message(), "enough");
  EXPECT_EQ(mine.queue.running_alone(), nullptr);
}

/// What packs several calls keeps its memory for the next ones.
TEST_F(QueueOfTwo, uses_the_memory_of_a_fused_call_again) {
  const std::array<const Call*, 2> calls{&call, &call}, others_calls{&others_call, &others_call};
  const auto run = [&] {
    out = {};
    const Added fused = *mine.queue.add_fused(calls, Gate::open);
    EXPECT_OK(mine.go_on());
    const std::byte* const packed = board.offered;
    *other.queue.add_fused(others_calls, Gate::open);
    go_on();
    EXPECT_TRUE(fused->done());
    EXPECT_EQ(out, sum);
    return packed;
  };
  const std::byte* const first = run();
  const auto filler =
      std::make_unique<std::array<std::byte, 4096>>();  // takes it, had it been given back
  EXPECT_EQ(run(), first);
}

TEST_F(QueueOfTwo, runs_a_check_behind_a_verified_call) {
  verify_each(1);
  board.shown = 1;
  const Added verified = mine.add(call);
  other.add(others_call);
  EXPECT_EQ(mine.queue.sequence(), 2U);
  EXPECT_FALSE(mine.queue.take_extra());
  go_on();
  EXPECT_EQ(out, sum);
  EXPECT_FALSE(verified->done()) << "it waits for its check";
  EXPECT_EQ(mine.queue.count_completed(), 0U);
  board.shown = 2;
  go_on();
  EXPECT_TRUE(verified->done());
  EXPECT_OK(verified->status());
  EXPECT_EQ(mine.queue.count_completed(), 1U);
}

TEST_F(QueueOfTwo, lets_nobody_wait_for_a_check_that_may_come_later) {
  verify_each(1);
  mine.me.verify.later = other.me.verify.later = true;
  board.shown = 1;
  const Added verified = mine.add(call);
  other.add(others_call);
  EXPECT_TRUE(mine.queue.take_extra());
  EXPECT_FALSE(mine.queue.take_extra()) << "once for each check";
  go_on();
  EXPECT_TRUE(verified->done());
  EXPECT_FALSE(mine.queue.empty()) << "the check is open still";
  EXPECT_EQ(mine.queue.count_completed(), 1U);
}

TEST_F(QueueOfTwo, verifies_each_nth_call_of_the_program) {
  verify_each(2);
  std::vector<std::uint64_t> places;
  for (int i = 0; i < 4; ++i) {
    mine.add(call);
    places.push_back(mine.queue.sequence());
  }
  EXPECT_EQ(places, (std::vector<std::uint64_t>{2, 3, 5, 6}));
}

TEST_F(QueueOfTwo, says_what_a_check_has_found) {
  verify_each(1);
  const Added verified = mine.add(call);
  other.add(others_call);
  ASSERT_OK(mine.go_on());
  ASSERT_OK(other.go_on());
  board.spoil(Rank{1}, 1);
  const Status problem = mine.go_on();
  EXPECT_EQ(problem.code(), Code::internal) << problem.message();
  EXPECT_FALSE(verified->done());
}

TEST_F(QueueOfTwo, limits_a_verified_call_with_its_check) {
  constexpr std::chrono::hours kLong{1};
  verify_each(1);
  const Added verified = mine.add(call);
  ASSERT_OK(mine.go_on());
  ASSERT_NE(mine.queue.running(), nullptr);
  ASSERT_NE(mine.queue.running(), verified.get()) << "the check does not run yet";
  mine.queue.limit(*verified, kLong);
  EXPECT_EQ(verified->time_limit(), kLong);
  EXPECT_EQ(mine.queue.running()->time_limit(), kLong);
}

}  // namespace
}  // namespace anyccl::test
