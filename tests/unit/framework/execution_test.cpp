// These tests run one collective call at one rank, one step after the other.

#include "framework/collective/execution.hpp"

#include <array>
#include <memory>
#include <vector>

#include "framework/collective/plan_cache.hpp"
#include "support/ranks.hpp"
#include "unit/framework/board.hpp"

namespace anyccl::test {
namespace {

/// One rank and its execution, by plans as its communicator would have them.
struct ExecutingRank {
  ExecutingRank(Board& board, Rank rank, int size, const char* rules = "one_shot")
      : me(member_of(board, rank, size, rules)) {}

  /// Calls have tiles of at most so many bytes.
  void use_tiles_of(std::size_t bytes) { me.policy.environment.chunk_bytes = bytes; }
  void start(const Call& call, Position position = {1, 0}) {
    prepared = *plans.find(call, CallKey(call, me.rank));
    scratch.resize(prepared->scratch_bytes);
    run.start(*prepared, call, position, scratch.data());
  }
  std::vector<Rank> awaited() const {
    std::vector<Rank> ranks;
    run.awaited(ranks);
    return ranks;
  }

  Membership me;
  Routes routes{me.transports, me.size};
  PlanCache plans{me, slots_for(me.size), routes.publications, routes.publications_to};
  std::shared_ptr<const PreparedCall> prepared;
  std::vector<std::byte> scratch;
  Execution run{me.rank, routes.publications_to, routes.publications};
};

/// Counts how often it was asked, and says what the test wants.
class Judge final : public AroundCall {
 public:
  void before() override {}
  Status after() override {
    ++asked;
    return says;
  }
  int asked = 0;
  Status says;
};

using Ranks = std::vector<Rank>;

struct ExecutionOfTwo : testing::Test {
  Board board;
  ExecutingRank mine{board, Rank{0}, 2}, other{board, Rank{1}, 2};
  std::array<float, 4> in{1, 2, 3, 4}, out{}, others_in{10, 20, 30, 40}, others_out{};
  const std::array<float, 4> sum{11, 22, 33, 44};
  const Call call = sum_of(in, out), others_call = sum_of(others_in, others_out);
};

TEST(ExecutionOfOne, is_done_at_once) {
  Board board;
  ExecutingRank rank(board, Rank{0}, 1);
  std::array<float, 3> in{1, 2, 3}, out{};
  rank.start(sum_of(in, out));
  EXPECT_FALSE(rank.run.done());
  EXPECT_TRUE(rank.run.advance());
  EXPECT_TRUE(rank.run.done());
  EXPECT_EQ(out, in);
  EXPECT_TRUE(rank.awaited().empty());
}

TEST(ExecutionOfFour, awaits_just_the_ranks_that_are_missing) {
  Board board;
  std::array<float, 1> in{1}, out{};
  ExecutingRank rank(board, Rank{0}, 4);
  rank.start(sum_of(in, out));
  rank.run.advance();
  EXPECT_EQ(rank.awaited(), (Ranks{Rank{1}, Rank{2}, Rank{3}}));
  for (const Rank present : {Rank{1}, Rank{3}}) {
    ExecutingRank peer(board, present, 4);
    std::array<float, 1> result{};
    peer.start(sum_of(in, result));
    peer.run.advance();
  }
  rank.run.advance();
  EXPECT_FALSE(rank.run.done());
  EXPECT_EQ(rank.awaited(), Ranks{Rank{2}});
}

TEST_F(ExecutionOfTwo, is_done_when_the_peer_has_published) {
  mine.start(call);
  mine.run.advance();
  EXPECT_FALSE(mine.run.done());
  EXPECT_FALSE(mine.run.advance()) << "nothing moves meanwhile";
  other.start(others_call);
  other.run.advance();
  EXPECT_TRUE(mine.run.advance());
  EXPECT_TRUE(mine.run.done());
  EXPECT_EQ(out, sum);
}

TEST_F(ExecutionOfTwo, has_another_progress_each_time_that_it_moves) {
  mine.start(call);
  const std::uint64_t begin = mine.run.progress();
  mine.run.advance();
  const std::uint64_t published = mine.run.progress();
  EXPECT_NE(published, begin);
  mine.run.advance();
  EXPECT_EQ(mine.run.progress(), published);
}

TEST_F(ExecutionOfTwo, reads_nothing_of_a_peer_that_made_other_calls_before) {
  other.start(others_call, {2, 4711});
  other.run.advance();
  mine.start(call, {2, 4712});
  mine.run.advance();
  EXPECT_FALSE(mine.run.done());
  EXPECT_EQ(mine.awaited(), Ranks{Rank{1}});
  EXPECT_EQ(mine.run.record().sequence, 2U);
  EXPECT_EQ(mine.run.record().history, 4712U);
}

TEST_F(ExecutionOfTwo, says_at_which_step_it_is) {
  mine.start(call);
  EXPECT_EQ(mine.run.place(), "step 1 of 2 of all_reduce/one_shot");
  mine.run.advance();
  EXPECT_EQ(mine.run.place(), "step 2 of 2 of all_reduce/one_shot");
  other.start(others_call);
  other.run.advance();
  mine.run.advance();
  EXPECT_EQ(mine.run.place(), "at the end of all_reduce/one_shot");
}

TEST_F(ExecutionOfTwo, says_at_which_tile_it_is) {
  constexpr std::size_t kTile = 4096, kCount = 4 * kTile / sizeof(float);
  const std::vector<float> large(kCount, 1.0F), others_large(kCount, 2.0F);
  std::vector<float> mine_out(kCount), others_result(kCount);
  for (ExecutingRank* rank : {&mine, &other}) rank->use_tiles_of(kTile);
  mine.start(sum_of(large, mine_out));
  other.start(sum_of(others_large, others_result));
  ASSERT_EQ(mine.prepared->geometry.tiles(), 4U);
  EXPECT_EQ(mine.run.place(), "step 1 of 2 of all_reduce/one_shot, tile 1 of 4");
  other.run.advance();  // publishes two tiles, as many as may be under way
  mine.run.advance();
  EXPECT_EQ(mine.run.place(), "step 2 of 2 of all_reduce/one_shot, tile 3 of 4");
  for (int i = 0; i < 4; ++i)
    for (ExecutingRank* rank : {&other, &mine}) rank->run.advance();
  EXPECT_TRUE(mine.run.done());
  EXPECT_EQ(mine_out, std::vector<float>(kCount, 3.0F));
}

TEST_F(ExecutionOfTwo, is_not_done_while_a_peer_reads_its_memory) {
  board.is_read = false;
  other.start(others_call);
  other.run.advance();
  mine.start(call);
  mine.run.advance();
  EXPECT_EQ(mine.run.place(), "at the end of all_reduce/one_shot");
  EXPECT_FALSE(mine.run.done());
  EXPECT_EQ(mine.awaited(), Ranks{Rank{1}});
  board.is_read = true;
  EXPECT_TRUE(mine.run.advance());
  EXPECT_TRUE(mine.run.done());
}

TEST(ExecutionOfAnAverage, divides_once_when_nobody_reads_the_sum_any_more) {
  Board board;
  board.is_read = false;
  ExecutingRank mine(board, Rank{0}, 2, "ring"), other(board, Rank{1}, 2, "ring");
  std::array<float, 2> in{1, 2}, out{}, others_in{10, 20}, others_out{};
  Call call = sum_of(in, out), others_call = sum_of(others_in, others_out);
  call.op = others_call.op = ReduceOp::avg;
  mine.start(call);
  other.start(others_call);
  for (int i = 0; i < 4; ++i)
    for (ExecutingRank* rank : {&mine, &other}) rank->run.advance();
  EXPECT_EQ(out, (std::array<float, 2>{11, 22})) << "the sum";
  board.is_read = true;
  mine.run.advance();
  ASSERT_TRUE(mine.run.done());
  EXPECT_EQ(out, (std::array<float, 2>{5.5F, 11}));
}

TEST_F(ExecutionOfTwo, is_never_done_if_its_result_is_found_wrong) {
  Judge judge;
  judge.says = Status(Code::internal, "element 3 is wrong");
  other.start(others_call);
  other.run.advance();
  mine.start(call);
  mine.run.end_with(&judge);
  EXPECT_TRUE(mine.run.advance());
  EXPECT_EQ(mine.run.problem().message(), "element 3 is wrong");
  EXPECT_FALSE(mine.run.done());
  EXPECT_EQ(judge.asked, 1);
}

TEST_F(ExecutionOfTwo, asks_for_what_comes_after_it_once_the_result_is_there) {
  Judge judge;
  mine.start(call);
  mine.run.end_with(&judge);
  mine.run.advance();
  EXPECT_EQ(judge.asked, 0);
  other.start(others_call);
  other.run.advance();
  mine.run.advance();
  EXPECT_EQ(judge.asked, 1);
  EXPECT_TRUE(mine.run.done());
  EXPECT_OK(mine.run.problem());
}

TEST_F(ExecutionOfTwo, forgets_what_was_around_the_call_before) {
  Judge judge;
  for (const std::uint64_t sequence : {1U, 2U}) {
    other.start(others_call, {sequence, 0});
    other.run.advance();
    mine.start(call, {sequence, 0});
    if (sequence == 1) mine.run.end_with(&judge);
    mine.run.advance();
    EXPECT_TRUE(mine.run.done());
  }
  EXPECT_EQ(judge.asked, 1);
}

TEST_F(ExecutionOfTwo, runs_again) {
  mine.start(call);
  other.start(others_call);
  mine.run.advance();
  other.run.advance();
  mine.run.advance();
  ASSERT_TRUE(mine.run.done());
  EXPECT_NE(mine.run.kind(), 0U);
  mine.run.again();
  EXPECT_FALSE(mine.run.done());
  EXPECT_EQ(mine.run.kind(), 0U) << "it does not run yet";
  in = {5, 6, 7, 8};
  mine.start(call, {2, 0});
  mine.run.advance();
  EXPECT_FALSE(mine.run.done());
  other.start(others_call, {2, 0});
  other.run.advance();
  mine.run.advance();
  ASSERT_TRUE(mine.run.done());
  EXPECT_EQ(out, (std::array<float, 4>{15, 26, 37, 48}));
}

}  // namespace
}  // namespace anyccl::test
