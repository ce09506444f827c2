// Replays of plans on one host: tiles, rings, caches and cores that ranks share.

#include "simulate/host_replay.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "simulate/host_costs.hpp"
#include "simulate/read_network.hpp"
#include "simulate/runs.hpp"

namespace anyccl::cli {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A copy takes 0.1 ns/B in caches of 1 MiB a core, and 1 ns/B in memory; nothing else takes time.
Calibration calibration(int cores) {
  Calibration c;
  c.links = {{"shm", {{kUnlimited, 0, 0}}, 0, 0, 2}};
  c.cores = cores;
  c.memory_alone = {{1 << 20, 0.03e-9, 0.07e-9}, {1 << 21, 0.3e-9, 0.7e-9}};
  c.memory_shared = c.memory_alone;
  return c;
}

Machine machine(const Calibration& constants) {
  Machine m;
  m.calibration = std::make_shared<const Calibration>(constants);
  return m;
}

HostPlans plans(Collective collective, std::string_view name, int ranks) {
  auto made = HostPlans::of(*find_algorithm(collective, name), {collective, ranks});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

double us(Collective collective, std::string_view name, int ranks, std::size_t bytes,
          const Calibration& constants, bool touches = false) {
  const auto result =
      replay_on_host(plans(collective, name, ranks), machine(constants), bytes, touches);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? result->seconds * 1e6 : 0;
}

/// Those of broadcasts to one rank, up to 512 KiB; then they are twice that.
constexpr std::size_t kTile = 32768;

double broadcast(int ranks, std::size_t bytes, const Calibration& constants) {
  return us(Collective::broadcast, "binomial", ranks, bytes, constants);
}

TEST(HostReplay, copies_a_tile_into_the_ring_and_out_of_it) {
  EXPECT_NEAR(broadcast(2, kTile, calibration(2)), 2 * kTile * 0.1e-3, 1e-9);
}

TEST(HostReplay, overlaps_the_copies_of_tiles) {
  // The root copies four tiles into the ring and to its output; meanwhile the other rank copies
  // them out of the ring.
  EXPECT_NEAR(broadcast(2, 4 * kTile, calibration(2)), 8 * kTile * 0.1e-3, 1e-9);
}

TEST(HostReplay, takes_a_line_for_what_fits_a_slot) {
  Calibration c = calibration(2);
  c.links[0].segments = {{2048, 0, 0.4e-9}, {kUnlimited, 0, 0}};
  EXPECT_NEAR(broadcast(2, 2000, c), 2000 * 0.4e-3, 1e-9);
  c.links[0].overhead_s = 1e-6;  // of the publication, and of reading it
  EXPECT_NEAR(broadcast(2, 2000, c), 2 + 2000 * 0.4e-3, 1e-9);
}

TEST(HostReplay, passes_the_way_between_cores_twice) {
  Calibration c = calibration(2);
  c.links[0].segments = {{kUnlimited, 0, 0.5e-9}};  // of which two copies are 0.2
  EXPECT_NEAR(broadcast(2, kTile, c), kTile * 0.5e-3, 1e-9);
}

TEST(HostReplay, is_as_slow_as_the_memory_that_ranks_of_a_core_touch) {
  // 16 MiB on two ranks are far beyond the caches, 64 KiB are within; so is what ranks do with
  // them.
  const Calibration c = calibration(2);
  const double small = us(Collective::all_reduce, "two_shot", 2, 65536, c),
               large = us(Collective::all_reduce, "two_shot", 2, 16 * kMiB, c);
  EXPECT_GT(large / small, 4 * 256);
  // The same vector on more ranks than cores: each core has four times as much in turns.
  Calibration roomy = c;
  roomy.cores = 8;
  EXPECT_GT(us(Collective::all_reduce, "two_shot", 8, kMiB / 4, c),
            8 * us(Collective::all_reduce, "two_shot", 8, kMiB / 4, roomy));
}

TEST(HostCosts, count_what_all_ranks_of_a_core_touch) {
  const HostPlans eight = plans(Collective::all_reduce, "two_shot", 8);
  const HostPlans::Bound call = eight.bind(kMiB / 4);
  const Calibration few = calibration(2), many = calibration(8);
  const HostCosts crowded(few, few.links[0], eight, call), roomy(many, many.links[0], eight, call);
  EXPECT_NEAR(roomy.touch_s(true), kMiB / 4 * 0.1e-9, 1e-12);
  EXPECT_NEAR(crowded.touch_s(true), kMiB / 4 * 1e-9, 1e-12);
}

TEST(HostReplay, divides_cores_among_ranks) {
  Calibration c = calibration(8);
  const double alone = us(Collective::all_reduce, "one_shot", 8, 16384, c);
  c.cores = 2;
  const double crowded = us(Collective::all_reduce, "one_shot", 8, 16384, c);
  EXPECT_GT(crowded, 3.5 * alone);
  EXPECT_LT(crowded, 4.5 * alone);
}

TEST(HostReplay, passes_a_core_on_through_ranks_that_wait) {
  Calibration c = calibration(1);
  const double without = us(Collective::all_reduce, "one_shot", 4, 8, c);
  c.hand_over_s = 5e-6;
  // Three turns until all have published, and three more until the last one has read.
  EXPECT_NEAR(us(Collective::all_reduce, "one_shot", 4, 8, c) - without, 6 * 5, 0.2);
  c.cores = 4;
  EXPECT_LT(us(Collective::all_reduce, "one_shot", 4, 8, c), 0.01);
}

TEST(HostReplay, waits_for_the_readers_of_its_slots) {
  Calibration c = calibration(1);
  c.hand_over_s = 1;
  // The core goes there and back for each 16 tiles, which have a slot each.
  EXPECT_LT(broadcast(2, 16 * kTile, c), 2.5e6);
  EXPECT_GT(broadcast(2, 64 * 2 * kTile, c), 6.5e6);
}

TEST(HostReplay, has_a_factor_of_its_own_for_ranks_in_turns) {
  Calibration c = calibration(2);
  const double two = us(Collective::all_reduce, "ring", 2, 1024, c),
               four = us(Collective::all_reduce, "ring", 4, 1024, c);
  c.factors_link = "shm";
  c.factors = {{1024, 2}};
  c.factors_in_turns = {{1024, 3}};
  EXPECT_NEAR(us(Collective::all_reduce, "ring", 2, 1024, c), 2 * two, 1e-9);
  EXPECT_NEAR(us(Collective::all_reduce, "ring", 4, 1024, c), 3 * four, 1e-9);
}

TEST(HostReplay, counts_what_others_of_a_core_touch_before_they_come) {
  Calibration c = calibration(1);
  const double without = us(Collective::all_reduce, "one_shot", 2, 16384, c),
               with = us(Collective::all_reduce, "one_shot", 2, 16384, c, true);
  EXPECT_GT(with, without + 16384 * 0.09e-3);  // the first one waits for the other one
  c.cores = 2;
  EXPECT_NEAR(us(Collective::all_reduce, "one_shot", 2, 16384, c, true),
              us(Collective::all_reduce, "one_shot", 2, 16384, c), 1e-9);
}

TEST(HostReplay, goes_on_from_some_tiles_to_many) {
  const Calibration c = calibration(2);
  const double half = broadcast(2, 512 * 65536, c), whole = broadcast(2, 1024 * 65536, c);
  EXPECT_NEAR(whole / half, 2, 0.01);
}

TEST(HostReplay, notes_messages_additions_and_waits) {
  ReplayLog log;
  const auto result = replay_on_host(plans(Collective::all_reduce, "single_leader", 2),
                                     machine(calibration(2)), 65536, false, &log);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(log.messages.size(), 2U);  // to the leader and back
  EXPECT_EQ(log.messages[0].to, log.messages[1].from);
  EXPECT_DOUBLE_EQ(log.messages[0].bytes, 65536);
  ASSERT_EQ(log.additions.size(), 1U);
  EXPECT_GT(log.additions[0].end, log.additions[0].begin);
  EXPECT_FALSE(log.waits.empty());
  for (const StepSpan& wait : log.waits) EXPECT_LT(wait.begin, wait.end);
}

TEST(HostReplay, ends_for_every_algorithm) {
  Calibration c = calibration(2);
  c.hand_over_s = 1e-6;
  for (const Algorithm* algorithm : all_algorithms())
    for (const int ranks : {1, 3, 8}) {
      const Shape shape{algorithm->collective, ranks};
      if (!algorithm->supports(shape) || !HostPlans::can_plan(*algorithm, ranks)) continue;
      auto made = HostPlans::of(*algorithm, shape);
      ASSERT_TRUE(made.ok()) << id(*algorithm) << ": " << made.status().message();
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{700'001}}) {
        ReplayLog log;
        const auto result = replay_on_host(*made, machine(c), bytes, true, &log);
        ASSERT_TRUE(result.ok()) << id(*algorithm) << " on " << ranks << " ranks, " << bytes
                                 << " bytes: " << result.status().message();
        EXPECT_EQ(result->done.size(), static_cast<std::size_t>(ranks));
        for (const MessageSpan& message : log.messages) EXPECT_LE(message.begin, message.end);
      }
    }
}

TEST(HostReplay, is_what_simulations_of_one_host_take) {
  const Calibration c = calibration(2);
  const auto network = read_network("flat", 2);
  SimulationSetting setting;
  setting.machine = machine(c);
  setting.machine.between = "shm";
  const std::size_t sizes[] = {4 * 65536};
  const Algorithm& binomial = *find_algorithm(Collective::broadcast, "binomial");
  const auto runs = simulate_sizes(binomial, 2, sizes, *network, setting);
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_NEAR(runs->at(0).result.seconds * 1e6, broadcast(2, 4 * 65536, c), 1e-9);
  EXPECT_EQ(runs->at(0).result.messages, 1U);
  Calibration old = c;
  old.memory_alone.clear();
  old.links[0].segments = {{kUnlimited, 7e-6, 0}};
  setting.machine.calibration = std::make_shared<const Calibration>(old);
  const auto messages = simulate_sizes(binomial, 2, sizes, *network, setting);
  ASSERT_TRUE(messages.ok());
  EXPECT_NEAR(messages->at(0).result.seconds * 1e6, 7, 1e-9);  // one message, as a whole
}

}  // namespace
}  // namespace anyccl::cli
