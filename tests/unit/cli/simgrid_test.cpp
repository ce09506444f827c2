// SimGrid is the oracle of our engine: the same schedules on the same networks take the same time.

#include "simulate/simgrid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "simulate/read_network.hpp"

namespace anyccl::cli {
namespace {

struct Times {
  double ours = 0, simgrid = 0;
  double difference() const { return ours / simgrid - 1; }
};

Times times_of(const Algorithm& algorithm, int ranks, double bytes, const std::string& topology,
               const Machine& machine = {}) {
  const auto programs = RankPrograms::of(algorithm, {algorithm.collective, ranks});
  EXPECT_TRUE(programs.ok()) << programs.status().message();
  const auto network = read_network(topology, static_cast<std::uint32_t>(ranks));
  EXPECT_TRUE(network.ok()) << network.status().message();
  std::vector<std::uint32_t> place(static_cast<std::size_t>(ranks));
  std::iota(place.begin(), place.end(), 0U);
  const auto ours = replay(*programs, *network, machine, bytes, place);
  const auto theirs = replay_by_simgrid(*programs, *network, machine, bytes, place);
  EXPECT_TRUE(ours.ok()) << ours.status().message();
  EXPECT_TRUE(theirs.ok()) << theirs.status().message();
  if (!ours.ok() || !theirs.ok()) return {};
  EXPECT_EQ(ours->messages, theirs->messages);
  EXPECT_EQ(ours->done.size(), theirs->done.size());
  return {ours->seconds, theirs->seconds};
}

/// 64 KiB a chunk at least, so that SimGrid's whole bytes do not count.
constexpr double kBytes = 1 << 24;

class OracleOfAll : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, OracleOfAll, ::testing::Values(8, 16));

TEST_P(OracleOfAll, agrees_on_a_star_with_every_algorithm) {
  int compared = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!algorithm->supports({algorithm->collective, GetParam()})) continue;
    const Times times = times_of(*algorithm, GetParam(), kBytes, "flat");
    if (times.simgrid > 0)
      EXPECT_NEAR(times.difference(), 0, 1e-4) << id(*algorithm);
    else
      EXPECT_EQ(times.ours, 0) << id(*algorithm);
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

TEST(Oracle, agrees_on_overheads_and_additions) {
  const Machine machine = {.alpha_s = 2e-6,
                           .hop_s = 0.3e-6,
                           .overhead_s = 0.7e-6,
                           .bytes_per_s = 12.5e9,
                           .gamma_s_per_byte = 1 / 50e9};
  for (const char* name : {"ring", "halving_doubling", "recursive_doubling"})
    EXPECT_NEAR(times_of(*find_algorithm(Collective::all_reduce, name), 16, kBytes, "flat", machine)
                    .difference(),
                0, 1e-4)
        << name;
}

struct Shared {
  Collective collective;
  std::string_view name;
};

/// Those whose ranks go in step: flows that share a link are alike, and nothing is left over.
constexpr Shared kInStep[] = {{Collective::all_reduce, "ring"},
                              {Collective::all_reduce, "halving_doubling"},
                              {Collective::all_reduce, "recursive_doubling"},
                              {Collective::all_reduce, "two_shot"},
                              {Collective::all_gather, "ring"},
                              {Collective::all_gather, "bruck"},
                              {Collective::reduce_scatter, "recursive_halving"}};

class OracleOfSharedLinks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Topologies, OracleOfSharedLinks,
                         ::testing::Values("torus:dims=4x4x4", "fat-tree", "fat-tree:k=8,taper=4"));

TEST_P(OracleOfSharedLinks, agrees_within_6_percent_where_ranks_go_in_step) {
  for (const auto& [collective, name] : kInStep)
    EXPECT_NEAR(times_of(*find_algorithm(collective, name), 64, kBytes, GetParam()).difference(), 0,
                0.06)
        << name;
}

TEST(Oracle, refuses_what_it_has_no_model_of) {
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  const auto programs = RankPrograms::of(ring, {Collective::all_reduce, 2});
  const auto network = read_network("flat", 2);
  Machine machine;
  machine.calibration = std::make_shared<const Calibration>();
  EXPECT_EQ(replay_by_simgrid(*programs, *network, machine, 8, {0, 1}).status().message(),
            "--engine simgrid has no cores: leave --model out");
}

}  // namespace
}  // namespace anyccl::cli
