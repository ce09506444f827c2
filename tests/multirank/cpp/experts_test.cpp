// Routing of tokens to experts in the C++ interface.

#include <array>

#include "multirank/cpp/expect.hpp"

namespace anyccl::test {
namespace {

using Ints = std::vector<int>;

TEST(CppExperts, get_the_tokens_and_give_back_weighted_sums) {
  run_ranks(2, [](Communicator& comm) {
    const int me = index(comm.rank());
    const Ints experts{0, 3, 2, -1};  // two choices for each of two tokens
    const std::vector<float> tokens{1, 2, 3, 4}, weights{0.5F, 2, 1, 9};  // of width 2
    RoutingConfig config;
    config.experts = 4;
    config.choices = 2;
    auto routing = Routing::create(comm, experts, config);
    ASSERT_TRUE(routing.ok()) << routing.status().message();
    EXPECT_EQ(routing->tokens(), 2U);
    EXPECT_EQ(routing->rows(), me == 0 ? 2U : 4U);
    EXPECT_EQ(routing->tokens_of_experts(),
              me == 0 ? (std::vector<std::size_t>{2, 0}) : (std::vector<std::size_t>{2, 2}));
    EXPECT_EQ(routing->dropped(), 0U);
    std::vector<float> rows(routing->rows() * 2), back(4, -1);
    ASSERT_OK(routing->dispatch(comm, tokens, rows));
    EXPECT_EQ(rows, me == 0 ? (std::vector<float>{1, 2, 1, 2})
                            : (std::vector<float>{3, 4, 3, 4, 1, 2, 1, 2}));
    ASSERT_OK(routing->combine(comm, rows, weights, back));
    EXPECT_EQ(back, (std::vector<float>{2.5F, 5, 3, 4}));
    ASSERT_OK(routing->combine(comm, rows, {}, back));
    EXPECT_EQ(back, (std::vector<float>{2, 4, 3, 4}));
  });
}

/// Expert parallelism within data and tensor parallelism: of each expert group, with tokens and
/// experts of its own.
TEST(CppExperts, are_shared_by_the_group_of_a_grid) {
  run_ranks(8, [](Communicator& world) {
    const auto grid = Grid::create(world, {{"data", 2}, {"expert", 2}, {"tensor", 2}});
    ASSERT_TRUE(grid.ok());
    auto expert = grid->split(world, {"expert"}), data = grid->split(world, {"data"});
    ASSERT_TRUE(expert.ok() && data.ok());
    const int me = index(world.rank());
    const Ints experts{me / 2 % 4, 3, 0};  // of four
    const std::vector<double> tokens{1.0 + me, 2, 3};
    RoutingConfig config;
    config.experts = 4;
    auto routing = Routing::create(*expert, experts, config);
    ASSERT_TRUE(routing.ok()) << routing.status().message();
    std::vector<double> rows(routing->rows()), back(3);
    ASSERT_OK(routing->dispatch(*expert, tokens, rows));
    std::size_t row = 0;
    const auto counts = routing->tokens_of_experts();
    for (std::size_t e = 0; e < counts.size(); ++e)
      for (std::size_t i = 0; i < counts[e]; ++i)  // expert e multiplies by e + 1
        rows[row++] *= static_cast<double>(2 * static_cast<std::size_t>(expert->rank()) + e + 1);
    ASSERT_OK(routing->combine(*expert, rows, {}, back));
    EXPECT_EQ(back, (std::vector<double>{(1.0 + me) * (experts[0] + 1), 8, 3}));
    std::vector<std::int64_t> seen(counts.begin(), counts.end());
    ASSERT_OK(wait(data->all_reduce(seen, seen, ReduceOp::sum)));
    EXPECT_EQ(seen, expert->rank() == Rank{0} ? (std::vector<std::int64_t>{5, 1})
                                              : (std::vector<std::int64_t>{1, 5}));
  });
}

TEST(CppExperts, drop_what_is_beyond_their_capacity_and_have_padded_rows) {
  run_ranks(2, [](Communicator& comm) {
    const Ints experts{0, 0, 0};
    RoutingConfig config;
    config.experts = 2;
    config.capacity = 2;
    config.padded = true;
    const auto routing = Routing::create(comm, experts, config);
    ASSERT_TRUE(routing.ok());
    EXPECT_EQ(routing->rows(), 4U);
    EXPECT_EQ(routing->dropped(), 1U);
  });
}

TEST(CppExperts, name_what_is_wrong_with_their_arguments) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  RoutingConfig config;
  config.experts = 2;
  EXPECT_REFUSED(Routing::create(comm, Ints{0, 2}, config).status(), Code::invalid_argument,
                 "expert 2 of 2");
  config.choices = 2;
  EXPECT_REFUSED(Routing::create(comm, Ints{0, 1, 0}, config).status(), Code::invalid_argument,
                 "3 choices are not 2 per token");
  auto routing = Routing::create(comm, Ints{0, 1}, config);
  ASSERT_TRUE(routing.ok());
  std::vector<float> token(3), rows(6), few(5), weights(1);
  EXPECT_REFUSED(routing->dispatch(comm, token, few), Code::invalid_argument,
                 "3 elements of 1 tokens and 5 of 2 rows");
  EXPECT_REFUSED(routing->combine(comm, rows, weights, token), Code::invalid_argument,
                 "1 weights for 2 choices");
  EXPECT_REFUSED(group([&] { return routing->dispatch(comm, token, rows); }), Code::invalid_usage,
                 "cannot be in a group");
  ASSERT_OK(routing->dispatch(comm, token, rows));
}

}  // namespace
}  // namespace anyccl::test
