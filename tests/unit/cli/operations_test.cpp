#include "perf/operations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace anyccl::cli {
namespace {

TEST(BusFactor, is_that_of_nccl_tests) {
  EXPECT_DOUBLE_EQ(find_operation("all_reduce")->bus_factor(4), 1.5);
  EXPECT_DOUBLE_EQ(find_operation("all_reduce")->bus_factor(2), 1.0);
  EXPECT_DOUBLE_EQ(find_operation("all_to_all")->bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(find_operation("broadcast")->bus_factor(4), 1.0);
  EXPECT_DOUBLE_EQ(find_operation("send_recv")->bus_factor(4), 1.0);
}

TEST(Operation, that_nobody_knows_is_not_found) {
  EXPECT_EQ(find_operation("all_produce"), nullptr);
}

TEST(Operation, all_to_all_has_at_least_one_element_for_every_rank) {
  EXPECT_EQ(find_operation("all_to_all")->count(2, 8), 1U);
  EXPECT_EQ(find_operation("all_to_all")->count(64, 8), 8U);
}

/// One operation among `ranks`, whose result the test moves by hand.
class ByHand {
 public:
  ByHand(const char* operation, int ranks, std::size_t count, anycclRedOp_t redop = anycclSum)
      : count_(count), blocks_(static_cast<std::size_t>(find_operation(operation)->blocks(ranks))) {
    for (int rank = 0; rank < ranks; ++rank) {
      input_.emplace_back(count * blocks_);
      output_.emplace_back(count * blocks_);
    }
    for (std::size_t rank = 0; rank < input_.size(); ++rank) {
      const Case c{.type = kTypes[0],
                   .redop = redop,
                   .root = 1,
                   .count = count,
                   .rank = static_cast<int>(rank),
                   .ranks = ranks};
      exercises_.push_back(
          find_operation(operation)->make(c, input_[rank].data(), output_[rank].data(), nullptr));
      exercises_.back()->prepare(kTurn);
    }
  }

  /// Over all ranks.
  std::size_t count_wrong() const {
    std::size_t total = 0;
    for (const auto& exercise : exercises_) total += exercise->count_wrong(kTurn);
    return total;
  }
  std::vector<float>& input(std::size_t rank) { return input_[rank]; }
  std::vector<float>& output(std::size_t rank) { return output_[rank]; }
  std::size_t ranks() const { return input_.size(); }

  template <typename Combine>
  void all_reduce(Combine combine) {
    for (std::size_t i = 0; i < count_; ++i) {
      float result = input_[0][i];
      for (std::size_t rank = 1; rank < ranks(); ++rank) result = combine(result, input_[rank][i]);
      for (auto& output : output_) output[i] = result;
    }
  }

 private:
  static constexpr std::uint32_t kTurn = 7;
  std::size_t count_, blocks_;
  std::vector<std::vector<float>> input_, output_;
  std::vector<std::unique_ptr<Exercise>> exercises_;
};

TEST(Exercise, all_reduce_expects_the_sum) {
  ByHand hand("all_reduce", 3, 5000);
  hand.all_reduce([](float a, float b) { return a + b; });
  EXPECT_EQ(hand.count_wrong(), 0U);
}

TEST(Exercise, all_reduce_expects_the_maximum) {
  ByHand hand("all_reduce", 3, 5000, anycclMax);
  hand.all_reduce([](float a, float b) { return std::max(a, b); });
  EXPECT_EQ(hand.count_wrong(), 0U);
}

TEST(Exercise, all_reduce_counts_a_wrong_element_at_one_rank) {
  ByHand hand("all_reduce", 3, 5000);
  hand.all_reduce([](float a, float b) { return a + b; });
  hand.output(2)[4321] += 1;
  EXPECT_EQ(hand.count_wrong(), 1U);
}

TEST(Exercise, all_reduce_notices_a_rank_that_was_counted_twice) {
  ByHand hand("all_reduce", 3, 5000);
  hand.input(1) = hand.input(2);
  hand.all_reduce([](float a, float b) { return a + b; });
  EXPECT_EQ(hand.count_wrong(), 3U * 5000U);
}

TEST(Exercise, broadcast_expects_the_input_of_the_root) {
  ByHand hand("broadcast", 3, 5000);
  for (std::size_t rank = 0; rank < 3; ++rank) hand.output(rank) = hand.input(1);
  EXPECT_EQ(hand.count_wrong(), 0U);
  hand.output(2) = hand.input(0);
  EXPECT_EQ(hand.count_wrong(), 5000U);
}

TEST(Exercise, send_recv_expects_the_input_of_the_rank_before) {
  ByHand hand("send_recv", 3, 5000);
  for (std::size_t rank = 0; rank < 3; ++rank) hand.output(rank) = hand.input((rank + 2) % 3);
  EXPECT_EQ(hand.count_wrong(), 0U);
  hand.output(0) = hand.input(1);
  EXPECT_EQ(hand.count_wrong(), 5000U);
}

TEST(Exercise, all_to_all_expects_everybodys_block_for_this_rank) {
  constexpr std::size_t kCount = 1000;
  ByHand hand("all_to_all", 3, kCount);
  for (std::size_t to = 0; to < 3; ++to)
    for (std::size_t from = 0; from < 3; ++from)
      std::copy_n(&hand.input(from)[to * kCount], kCount, &hand.output(to)[from * kCount]);
  EXPECT_EQ(hand.count_wrong(), 0U);
  std::copy_n(&hand.input(1)[0], kCount, &hand.output(2)[kCount]);  // Meant for rank 0.
  EXPECT_EQ(hand.count_wrong(), kCount);
}

}  // namespace
}  // namespace anyccl::cli
