// Replays with the constants of a calibration.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "simulate/read_network.hpp"
#include "simulate/replay.hpp"

namespace anyccl::cli {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Shared memory: 2 us + 0.2 ns/B up to 1000 bytes, above 4 us + 0.1 ns/B; TCP: 20 us + 1 ns/B.
Calibration calibration(int cores) {
  Calibration c;
  c.links = {{"shm", {{1000, 2e-6, 0.2e-9}, {kUnlimited, 4e-6, 0.1e-9}}, 0.5e-6, 0, 4},
             {"tcp", {{kUnlimited, 20e-6, 1e-9}}, 3e-6, 0, 4}};
  c.read_s = 0.02e-9;
  c.write_s = 0.04e-9;
  c.copy_s = 0.03e-9;
  c.cores = cores;
  c.hand_over_s = 0.25e-6;
  return c;
}

double us(Collective collective, std::string_view name, int ranks, double bytes,
          const Calibration& constants, std::uint32_t ranks_per_host = 0) {
  Machine machine;
  machine.calibration = std::make_shared<const Calibration>(constants);
  machine.bytes_per_s = 1e9;
  const auto programs = RankPrograms::of(*find_algorithm(collective, name), {collective, ranks});
  EXPECT_TRUE(programs.ok());
  const auto network = read_network("flat", static_cast<std::uint32_t>(ranks));
  std::vector<std::uint32_t> place(static_cast<std::size_t>(ranks));
  std::iota(place.begin(), place.end(), 0U);
  const auto result = replay(*programs, *network, machine, bytes, place, ranks_per_host);
  EXPECT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->messages, programs->messages());
  return result->seconds * 1e6;
}

double broadcast(int ranks, double bytes, const Calibration& constants,
                 std::uint32_t per_host = 0) {
  return us(Collective::broadcast, "binomial", ranks, bytes, constants, per_host);
}

TEST(Calibrated, a_message_alone_takes_what_was_fitted) {
  const Calibration c = calibration(2);
  EXPECT_NEAR(broadcast(2, 8, c), 2 + 8 * 0.2e-3, 1e-9);
  EXPECT_NEAR(broadcast(2, 1e6, c), 4 + 1e6 * 0.1e-3, 1e-9);
  EXPECT_NEAR(broadcast(2, 1e6, c, 1), 20 + 1e6 * 1e-3, 1e-9);  // two hosts
}

TEST(Calibrated, an_addition_reads_and_writes) {
  // Both send to the other one; a receive of a vector that is added reads it over the link, and its
  // own vector, and writes the sum: what a copy from the link takes, one more operand, and nothing
  // else.
  const double exchange = us(Collective::all_reduce, "one_shot", 2, 1e6, calibration(2));
  EXPECT_NEAR(exchange, 4 + 1e6 * (0.1e-3 + 0.02e-3), 1e-6);
}

TEST(Calibrated, a_publication_is_copied_once_for_all_readers) {
  // The sender's overhead and copy, the way, three overheads, three reads over the link, an
  // addition of four.
  const double expected = 0.5 + 1e3 * 0.03 + 3 + 3 * 0.5 + 1e3 * (3 * 0.01 + 4 * 0.02 + 0.04);
  EXPECT_NEAR(us(Collective::all_reduce, "one_shot", 4, 1e6, calibration(4)), expected, 1e-6);
}

TEST(Calibrated, ranks_that_share_cores_wait_for_them) {
  const auto time = [](int cores) {
    return us(Collective::all_reduce, "ring", 8, 1e6, calibration(cores));
  };
  EXPECT_GT(time(1), 1.5 * time(2));
  EXPECT_GT(time(2), 1.5 * time(4));
  EXPECT_GE(time(4), time(8));
  EXPECT_EQ(time(8), time(64));
}

TEST(Calibrated, a_core_is_handed_over_in_time) {
  Calibration slow = calibration(1);
  slow.hand_over_s = 10e-6;
  // The root gets the core, and then the other rank, while the message is on its way for 1 us.
  EXPECT_NEAR(broadcast(2, 8, slow) - broadcast(2, 8, calibration(2)), 2 * 10 - 1, 1e-9);
}

TEST(Calibrated, copies_slow_each_other_down_in_memory) {
  Calibration narrow = calibration(2);
  narrow.memory_bytes_per_s = 1 / narrow.copy_s;  // both cores copy as much as one alone
  const double alone = broadcast(2, 1e6, calibration(2)), both = broadcast(2, 1e6, narrow);
  EXPECT_NEAR(both - 4, 2 * (alone - 4), 1e-6);
}

TEST(Calibrated, a_collective_takes_its_factor_more) {
  Calibration busy = calibration(2);
  busy.factors_link = "shm";
  busy.factors = {{1e6, 3}};
  const auto time = [](const Calibration& c) {
    return us(Collective::all_reduce, "ring", 4, 1e6, c);
  };
  EXPECT_NEAR(time(busy), 3 * time(calibration(2)), 1e-6);
}

TEST(Calibrated, ranks_of_a_host_do_not_use_the_network) {
  const Calibration c = calibration(64);
  // Two levels inside two hosts of four: slower than one host, and faster than eight.
  const double one = us(Collective::all_reduce, "ring", 8, 1e6, c, 8);
  const double two = us(Collective::all_reduce, "ring", 8, 1e6, c, 4);
  const double eight = us(Collective::all_reduce, "ring", 8, 1e6, c, 1);
  EXPECT_LT(one, two);
  EXPECT_LE(two, eight);
}

}  // namespace
}  // namespace anyccl::cli
