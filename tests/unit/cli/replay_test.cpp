#include "simulate/replay.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "simulate/read_network.hpp"

namespace anyccl::cli {
namespace {

constexpr double kAlpha = 5e-6, kBeta = 1 / 25e9;

std::vector<std::uint32_t> in_order(int ranks) {
  std::vector<std::uint32_t> place(static_cast<std::size_t>(ranks));
  std::iota(place.begin(), place.end(), 0U);
  return place;
}

/// The time in microseconds.
double simulated(Collective collective, std::string_view name, int ranks, double bytes,
                 const Machine& machine = {}, std::string_view topology = "flat") {
  const auto programs = RankPrograms::of(*find_algorithm(collective, name), {collective, ranks});
  EXPECT_TRUE(programs.ok()) << programs.status().message();
  const auto network = read_network(topology, static_cast<std::uint32_t>(ranks));
  EXPECT_TRUE(network.ok()) << network.status().message();
  const auto result = replay(*programs, *network, machine, bytes, in_order(ranks));
  EXPECT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->messages, programs->messages());
  return result->seconds * 1e6;
}

double all_reduce(std::string_view name, int ranks, double bytes) {
  return simulated(Collective::all_reduce, name, ranks, bytes);
}

TEST(Replay, of_recursive_doubling_sends_the_vector_in_each_round) {
  EXPECT_NEAR(all_reduce("recursive_doubling", 8, 1 << 20), 140.829, 5.1e-4);
  EXPECT_NEAR(all_reduce("recursive_doubling", 64, 1 << 20), 281.658, 5.1e-4);
}

TEST(Replay, of_binomial_trees_shares_the_port_of_the_root) {
  // The root of 8 ranks sends 3 vectors at once, so each has a third of its port.
  const double vector_us = (1 << 20) * kBeta * 1e6;
  EXPECT_NEAR(simulated(Collective::broadcast, "flat", 4, 1 << 20), 5 + 3 * vector_us, 1e-6);
}

TEST(Replay, adds_what_reductions_take) {
  Machine machine;
  machine.gamma_s_per_byte = 1 / 50e9;
  const int n = 64;
  const double m = 1 << 20, share = (n - 1.0) / n * m;
  const double seconds = 2 * (n - 1) * kAlpha + 2 * share * kBeta + share / 50e9;
  EXPECT_NEAR(simulated(Collective::all_reduce, "ring", n, m, machine), seconds * 1e6, 1e-6);
}

TEST(Replay, adds_the_links_of_a_route_to_the_latency) {
  Machine machine;
  machine.hop_s = 1e-6;
  // A message of neighbours crosses two ports and the cable between their routers.
  EXPECT_NEAR(simulated(Collective::all_reduce, "ring", 8, 0.001, machine, "ring"), 14 * 8.0, 1e-3);
}

TEST(Replay, keeps_a_sender_busy_with_each_message) {
  Machine machine;
  machine.overhead_s = 2e-6;
  // The last of 3 messages leaves when two have been sent; one message is sent within its own
  // latency.
  EXPECT_NEAR(simulated(Collective::broadcast, "flat", 4, 0.001, machine), 2 * 2 + 5, 1e-3);
  EXPECT_NEAR(simulated(Collective::all_reduce, "ring", 4, 0.001, machine), 6 * 5, 1e-3);
}

TEST(Replay, of_a_barrier_has_no_bytes) {
  EXPECT_DOUBLE_EQ(simulated(Collective::barrier, "dissemination", 1000, 1e9), 10 * 5.0);
}

TEST(Replay, of_one_rank_takes_no_time) {
  EXPECT_EQ(all_reduce("ring", 1, 1 << 20), 0);
}

TEST(Replay, gives_what_a_flow_leaves_over_to_nobody) {
  // Rank 0 receives from 3 ranks at a third of its port each.
  EXPECT_NEAR(simulated(Collective::gather, "flat", 4, 1 << 20), 5 + 3 * (1 << 20) * kBeta * 1e6,
              1e-6);
}

TEST(Replay, is_finished_by_every_algorithm_on_every_number_of_ranks) {
  for (const Algorithm* algorithm : all_algorithms())
    for (int n = 1; n <= 17; ++n) {
      if (!algorithm->supports({algorithm->collective, n})) continue;
      SCOPED_TRACE(testing::Message() << id(*algorithm) << " on " << n << " ranks");
      const double us = simulated(algorithm->collective, algorithm->name, n, 1024);
      EXPECT_EQ(us > 0, n > 1);
    }
}

TEST(Replay, of_a_circle_needs_one_program) {
  const auto programs = RankPrograms::of(*find_algorithm(Collective::all_reduce, "ring"),
                                         {Collective::all_reduce, 100});
  ASSERT_TRUE(programs.ok());
  EXPECT_EQ(programs->distinct(), 1U);
  EXPECT_EQ(programs->messages(), 2U * 99 * 100);
}

TEST(Replay, refuses_more_messages_than_it_has_time_for) {
  const auto programs = RankPrograms::of(*find_algorithm(Collective::all_reduce, "ring"),
                                         {Collective::all_reduce, 16384});
  ASSERT_FALSE(programs.ok());
  EXPECT_EQ(
      programs.status().message(),
      "all_reduce/ring on 16384 ranks sends about 536 million messages; at most 200 million are "
      "simulated");
}

}  // namespace
}  // namespace anyccl::cli
