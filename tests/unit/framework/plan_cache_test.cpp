// These tests ask which plans of a rank's calls are used again.

#include "framework/collective/plan_cache.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <span>

#include "support/ranks.hpp"
#include "unit/framework/board.hpp"

namespace anyccl::test {
namespace {

using Plan = std::shared_ptr<const PreparedCall>;

/// The plans of rank 0, whose peers are only named in them.
struct PlansOfRank {
  explicit PlansOfRank(int size, const char* rules = "one_shot")
      : me(member_of(board, Rank{0}, size, rules)) {}

  static CallKey key_of(const Call& call) { return {call, Rank{0}}; }
  Plan find(const Call& call) { return *cache.find(call, key_of(call)); }
  Plan plan(const Call& call) { return *cache.plan(call, key_of(call)); }
  bool is_checked(const Call& call) const { return cache.is_checked(call, key_of(call)); }
  bool knows_last(const Call& call) const { return cache.find_last(key_of(call)) != nullptr; }
  /// How many of four calls of this type may travel as one.
  std::size_t fusible(DType dtype, ReduceOp op) {
    std::array<std::array<double, 3>, 4> from{}, to{};
    std::array<Call, 4> calls;
    std::array<const Call*, 4> pointers{};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i] = {.dtype = dtype,
                  .op = op,
                  .count = from[i].size(),
                  .input = reinterpret_cast<const std::byte*>(from[i].data()),
                  .output = reinterpret_cast<std::byte*>(to[i].data())};
      pointers[i] = &calls[i];
    }
    return cache.count_fusible(pointers);
  }

  Board board;
  Membership me;
  Routes routes{me.transports, me.size};
  PlanCache cache{me, slots_for(me.size), routes.publications, routes.publications_to};
};

struct PlansOfFour : testing::Test {
  PlansOfRank plans{4};
  std::array<float, 8> a{}, b{}, c{};
  const Call call = sum_of(a, b);
  const Call shorter = sum_of(std::span(a).first(3), std::span(b).first(3));
};

TEST_F(PlansOfFour, are_the_same_objects_for_the_same_arguments) {
  const Plan first = plans.find(call), other = plans.find(shorter);
  EXPECT_NE(other, first);
  EXPECT_EQ(plans.find(sum_of(c, b)), first) << "whatever the buffers are";
  EXPECT_EQ(plans.find(shorter), other);
}

TEST_F(PlansOfFour, are_known_by_their_keys_if_they_were_found_last) {
  EXPECT_FALSE(plans.knows_last(call));
  const Plan first = plans.find(call);
  EXPECT_EQ(plans.cache.find_last(PlansOfRank::key_of(call)), first.get());
  plans.find(shorter);
  EXPECT_FALSE(plans.knows_last(call));
  EXPECT_TRUE(plans.knows_last(shorter));
}

TEST_F(PlansOfFour, know_that_a_call_with_the_same_sizes_was_checked) {
  EXPECT_FALSE(plans.is_checked(call));
  plans.find(call);
  EXPECT_TRUE(plans.is_checked(call));
  EXPECT_TRUE(plans.is_checked(sum_of(c, a))) << "other buffers are as good";
  EXPECT_FALSE(plans.is_checked(shorter));
}

TEST_F(PlansOfFour, do_not_call_checked_what_has_no_buffer) {
  plans.find(call);
  Call without = call;
  without.input = nullptr;
  EXPECT_FALSE(plans.is_checked(without));
  without = call;
  without.output = nullptr;
  EXPECT_FALSE(plans.is_checked(without));
}

TEST_F(PlansOfFour, do_not_call_checked_what_overlaps) {
  std::array<float, 16> whole{};
  plans.find(call);
  EXPECT_FALSE(plans.is_checked(sum_of(std::span(whole).first(8), std::span(whole).last(9))));
  EXPECT_TRUE(plans.is_checked(sum_of(std::span(whole).first(8), std::span(whole).last(8))));
}

TEST_F(PlansOfFour, call_checked_what_lies_in_its_place) {
  plans.find(sum_of(a, a));
  EXPECT_TRUE(plans.is_checked(sum_of(b, b)));
}

TEST_F(PlansOfFour, are_made_anew_once_they_were_forgotten) {
  const Plan before = plans.find(call);
  const std::uint64_t generation = plans.cache.generation();
  plans.cache.forget();
  EXPECT_NE(plans.cache.generation(), generation);
  EXPECT_EQ(plans.cache.last(), nullptr);
  EXPECT_FALSE(plans.knows_last(call));
  EXPECT_FALSE(plans.is_checked(call));
  EXPECT_NE(plans.find(call), before);
}

TEST_F(PlansOfFour, have_the_algorithm_of_today_once_they_were_forgotten) {
  EXPECT_EQ(plans.find(call)->routed->algorithm->name, "one_shot");
  plans.me.policy.environment.algorithms = *AlgorithmRules::parse("ring");
  EXPECT_EQ(plans.find(call)->routed->algorithm->name, "one_shot");
  plans.cache.forget();
  EXPECT_EQ(plans.find(call)->routed->algorithm->name, "ring");
}

TEST_F(PlansOfFour, of_later_calls_leave_the_last_one_alone) {
  const Plan last = plans.find(call), later = plans.plan(shorter);
  EXPECT_EQ(plans.cache.last(), last);
  EXPECT_TRUE(plans.knows_last(call));
  EXPECT_EQ(plans.find(shorter), later) << "and it is what is found then";
}

TEST_F(PlansOfFour, are_the_last_ones_when_they_are_used) {
  plans.find(call);
  const Plan later = plans.plan(shorter);
  plans.cache.use(shorter, PlansOfRank::key_of(shorter), later);
  EXPECT_EQ(plans.cache.last(), later);
  EXPECT_TRUE(plans.knows_last(shorter));
}

TEST_F(PlansOfFour, are_not_known_by_the_number_of_a_created_operator) {
  const auto twice = [] {
    Operator op;
    const float two = 2;
    std::memcpy(op.value.data(), &two, sizeof two);
    return op;
  };
  Operators& operators = plans.cache.operators();
  const ReduceOp handle = *operators.add(twice());
  Call multiplied = call;
  multiplied.op = operators.number_of(handle);
  const Plan before = plans.find(multiplied);
  EXPECT_EQ(plans.cache.last(), before);
  EXPECT_FALSE(plans.knows_last(multiplied));
  EXPECT_FALSE(plans.is_checked(multiplied));
  ASSERT_OK(operators.remove(handle));
  const ReduceOp next = *operators.add(twice());
  ASSERT_EQ(operators.number_of(next), ReduceOp{multiplied.op}) << "the number is given again";
  EXPECT_NE(plans.find(multiplied), before);
}

TEST_F(PlansOfFour, of_blocks_of_different_sizes_are_made_for_each_call) {
  const std::array<std::size_t, 4> counts{1, 2, 0, 1}, displs{0, 1, 3, 3};
  Call blocks = call;
  blocks.collective = Collective::all_gather_v;
  blocks.count = 1;
  blocks.recv_counts = counts.data();
  blocks.recv_displs = displs.data();
  const Plan first = plans.find(blocks);
  EXPECT_FALSE(plans.knows_last(blocks));
  EXPECT_NE(plans.find(blocks), first);
}

TEST_F(PlansOfFour, do_not_know_a_call_that_cannot_be_planned) {
  plans.find(call);
  Call refused = call;
  refused.dtype = DType::f64;
  Operator of_f32;
  refused.op = plans.cache.operators().number_of(*plans.cache.operators().add(of_f32));
  EXPECT_EQ(plans.cache.find(refused, PlansOfRank::key_of(refused)).status().code(),
            Code::invalid_usage);
  EXPECT_FALSE(plans.knows_last(refused));
  EXPECT_FALSE(plans.is_checked(refused));
}

TEST(FusiblePlans, are_all_of_exact_sums) {
  EXPECT_EQ(PlansOfRank(4, "ring").fusible(DType::i64, ReduceOp::sum), 4U);
}

TEST(FusiblePlans, are_all_of_the_larger_number) {
  EXPECT_EQ(PlansOfRank(4, "ring").fusible(DType::f32, ReduceOp::max), 4U);
}

TEST(FusiblePlans, are_none_of_inexact_sums_whose_order_depends_on_their_place) {
  EXPECT_EQ(PlansOfRank(4, "ring").fusible(DType::f32, ReduceOp::sum), 1U);
}

TEST(FusiblePlans, are_all_of_inexact_sums_by_the_tree) {
  EXPECT_EQ(PlansOfRank(4, "one_shot").fusible(DType::f32, ReduceOp::sum), 4U);
}

TEST(FusiblePlans, are_all_of_inexact_sums_of_two_ranks) {
  EXPECT_EQ(PlansOfRank(2, "ring").fusible(DType::f32, ReduceOp::sum), 4U);
}

TEST(FusiblePlans, are_none_where_fusion_is_off) {
  PlansOfRank plans(4);
  plans.me.fuses = false;
  EXPECT_EQ(plans.fusible(DType::i64, ReduceOp::sum), 1U);
}

}  // namespace
}  // namespace anyccl::test
