// Constants from what links did, and predictions beside measurements.

#include "calibrate/calibrate.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "calibrate/memory_rates.hpp"
#include "calibrate/validation.hpp"

namespace anyccl::cli {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

LinkTimings link(const std::string& name, double alpha_s, double beta_s) {
  LinkTimings timings;
  timings.link = name;
  for (const double bytes : {8.0, 56.0, 1e3, 2e3, 3e4, 6e4, 2e5, 1e6, 2e6, 4e6, 8e6, 3e7}) {
    SpreadTiming& ping = timings.pings.emplace_back();
    ping.bytes = bytes;
    ping.seconds = alpha_s + beta_s * bytes;
    ping.median_s = ping.high_s = 2 * ping.seconds;
  }
  timings.overhead_s = alpha_s / 4;
  return timings;
}

LinkTimings pairs_at_once(const std::string& name, double seconds) {
  LinkTimings timings;
  timings.link = name;
  timings.all_at_once_s = seconds;
  return timings;
}

TEST(Calibrate, fits_each_link_and_what_pairs_at_once_lose) {
  const auto fitted = fit_calibration({link("shm", 2e-6, 0.1e-9), pairs_at_once("shm", 3e-6),
                                       link("tcp", 20e-6, 1e-9), pairs_at_once("tcp", 90e-6)},
                                      {});
  ASSERT_TRUE(fitted.ok()) << fitted.status().message();
  ASSERT_EQ(fitted->links.size(), 2U);
  for (const double bytes : {8.0, 1e5, 1e7}) {
    EXPECT_NEAR(fitted->find("shm")->at(bytes).alpha_s, 2e-6, 1e-15);
    EXPECT_NEAR(fitted->find("tcp")->at(bytes).beta_s, 1e-9, 1e-18);
  }
  EXPECT_NEAR(fitted->find("tcp")->overhead_s, 5e-6, 1e-15);
  EXPECT_NEAR(fitted->hand_over_s, 3e-6 - 2e-6 - 8 * 0.1e-9, 1e-15);
}

TEST(Calibrate, has_an_overhead_of_at_most_half_a_message) {
  LinkTimings slow = link("shm", 2e-6, 0);
  slow.overhead_s = 5e-6;
  const auto fitted = fit_calibration({slow}, {});
  ASSERT_TRUE(fitted.ok());
  EXPECT_NEAR(fitted->links[0].overhead_s, 1e-6, 1e-15);
}

TEST(Calibrate, needs_a_link) {
  EXPECT_EQ(fit_calibration({pairs_at_once("shm", 1e-6)}, {}).status().message(),
            "a calibration needs at least two ranks");
}

TEST(Calibrate, reports_each_time_beside_the_fit) {
  const std::vector<LinkTimings> timings = {link("shm", 2e-6, 0.1e-9)};
  auto fitted = fit_calibration(timings, {});
  ASSERT_TRUE(fitted.ok());
  EXPECT_TRUE(has(report(timings, *fitted), "beta 0.1000 ns/B (10.00 GB/s)"));
  EXPECT_FALSE(has(report(timings, *fitted), "busy"));
  fitted->load = 7;
  EXPECT_TRUE(
      has(report(timings, *fitted), "the machine was busy: 7.0 programs wanted its 1 cores"));
}

TEST(MemoryRates, are_what_a_copy_takes_more_than_reading) {
  const std::vector<MemoryRate> rates = rates_of({{1e5, 0.03e-9, 0.01e-9}, {1e6, 0.1e-9, 0.04e-9}});
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_NEAR(rates[0].read_s, 0.01e-9, 1e-18);
  EXPECT_NEAR(rates[0].write_s, 0.02e-9, 1e-18);
  EXPECT_NEAR(rates[1].write_s, 0.06e-9, 1e-18);
}

TEST(MemoryRates, of_a_disturbed_size_are_those_of_the_next_one) {
  const std::vector<MemoryRate> rates = rates_of({{1e5, 0.3e-9, 0.2e-9}, {1e6, 0.1e-9, 0.04e-9}});
  EXPECT_NEAR(rates[0].read_s, 0.04e-9, 1e-18);
  EXPECT_NEAR(rates[0].write_s, 0.06e-9, 1e-18);
}

/// Messages of 10 us and nothing else, among enough cores.
Machine machine() {
  Calibration c;
  c.links = {{"shm", {{1e18, 10e-6, 0}}, 0, 0, 2}};
  c.cores = 64;
  Machine m;
  m.between = "shm";
  m.calibration = std::make_shared<const Calibration>(c);
  return m;
}

std::string row(const std::string& algorithm, int ranks, int bytes, double us) {
  const nlohmann::json json = {{"op", algorithm.substr(0, algorithm.find('/'))},
                               {"algorithm", algorithm},
                               {"ranks", ranks},
                               {"bytes", bytes},
                               {"median_us", us},
                               {"min_us", us / 2},
                               {"p99_us", us * 2}};
  return json.dump();
}

std::vector<Prediction> predictions() {
  // A ring takes 2 (n - 1) messages one after the other: 20, 60 and 140 us.
  const auto all = predict(
      "[" + row("all_reduce/ring", 2, 1024, 40) + "," + row("all_reduce/ring", 4, 1024, 180) + "," +
          row("all_reduce/one_shot", 4, 1024, 40) + "," + row("all_reduce/one_shot", 8, 1024, 5) +
          "," + row("all_reduce/ring", 8, 1024, 70) + "]",
      machine());
  EXPECT_TRUE(all.ok()) << all.status().message();
  return *all;
}

TEST(Validation, predicts_what_was_measured) {
  const std::vector<Prediction> all = predictions();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_NEAR(all[0].predicted_s, 20e-6, 1e-12);
  EXPECT_NEAR(all[0].error(), -0.5, 1e-9);
  EXPECT_NEAR(all[1].error(), 60.0 / 180 - 1, 1e-9);
  EXPECT_NEAR(all[4].error(), 1, 1e-9);
}

TEST(Validation, tells_what_is_held_out_from_what_was_fitted) {
  const std::string text = to_table(predictions(), 4);
  EXPECT_TRUE(has(text, "up to 4 ranks, as were fitted: error of 3 predictions 67 % in the median"))
      << text;
  EXPECT_TRUE(has(text, "more than 4 ranks, held out: error of 2 predictions 100 % in the median"))
      << text;
  EXPECT_TRUE(has(text, "within 10 % of the fastest in 1 of 1 places, x1.00 in the median"))
      << text;
}

TEST(Validation, has_the_factors_of_those_that_are_not_held_out) {
  const auto factors = factors_of(predictions(), 2, 4);
  ASSERT_EQ(factors.size(), 1U);
  EXPECT_EQ(factors[0].bytes, 1024);
  EXPECT_NEAR(factors[0].factor, 3, 1e-9);  // the median of 40 / 20, 180 / 60 and 40 / 10
  EXPECT_NEAR(factors_of(predictions(), 2, 3)[0].factor, 2, 1e-9);
  EXPECT_TRUE(factors_of(predictions(), 5, 4).empty());
}

TEST(Validation, refuses_blocks_and_unknown_algorithms) {
  const auto blocks = predict("[" + row("all_gather/ring", 2, 8, 1) + "]", machine());
  EXPECT_TRUE(has(std::string(blocks.status().message()), "not all_gather"));
  const auto unknown = predict("[" + row("all_reduce/magic", 2, 8, 1) + "]", machine());
  EXPECT_TRUE(has(std::string(unknown.status().message()), "no algorithm all_reduce/magic"));
}

}  // namespace
}  // namespace anyccl::cli
