// The constants of a model: fitted, written and read again.

#include "simulate/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace anyccl::cli {
namespace {

constexpr double kSizes[] = {8,     32,     56,     256,     1024,    2048,    8192,    32768,
                             65536, 131072, 524288, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20};

/// A link whose constants change at each limit.
const LinkCosts kLink = {"shm",
                         {{56, 1e-6, 2e-9},
                          {2048, 1.5e-6, 0.4e-9},
                          {65536, 3e-6, 0.2e-9},
                          {1 << 20, 8e-6, 0.15e-9},
                          {4 << 20, 12e-6, 0.13e-9},
                          {std::numeric_limits<double>::infinity(), 20e-6, 0.12e-9}},
                         0.4e-6,
                         0,
                         16};

std::vector<Timing> timings_of(const LinkCosts& link, double factor = 1) {
  std::vector<Timing> timings;
  for (const double bytes : kSizes)
    timings.push_back(
        {bytes, factor * (link.at(bytes).alpha_s + link.at(bytes).beta_s * bytes), 0});
  return timings;
}

TEST(Fit, finds_alpha_and_beta_of_each_segment) {
  const auto link = fit_link("shm", timings_of(kLink));
  ASSERT_TRUE(link.ok()) << link.status().message();
  ASSERT_EQ(link->segments.size(), kLink.segments.size());
  for (std::size_t i = 0; i < link->segments.size(); ++i) {
    EXPECT_NEAR(link->segments[i].alpha_s / kLink.segments[i].alpha_s, 1, 1e-9) << i;
    EXPECT_NEAR(link->segments[i].beta_s / kLink.segments[i].beta_s, 1, 1e-9) << i;
    EXPECT_EQ(link->segments[i].most_bytes, kLink.segments[i].most_bytes);
  }
  EXPECT_NEAR(link->residual, 0, 1e-9);
  EXPECT_EQ(link->points, 16);
}

TEST(Fit, says_how_far_the_times_are_from_the_line) {
  auto timings = timings_of(kLink);
  for (std::size_t i = 0; i < timings.size(); ++i) timings[i].seconds *= i % 2 == 0 ? 1.1 : 0.9;
  const auto link = fit_link("shm", timings);
  ASSERT_TRUE(link.ok());
  EXPECT_GT(link->residual, 0.03);
  EXPECT_LT(link->residual, 0.11);
}

TEST(Fit, has_no_negative_constant) {
  // A time that falls with the size, and one that grows faster than the size.
  const auto falls = fit_link("tcp", std::vector<Timing>{{100, 3e-6, 0}, {2000, 2e-6, 0}});
  ASSERT_TRUE(falls.ok());
  EXPECT_EQ(falls->segments[0].beta_s, 0);
  EXPECT_GT(falls->segments[0].alpha_s, 2e-6);
  const auto grows = fit_link("tcp", std::vector<Timing>{{100, 1e-6, 0}, {2000, 50e-6, 0}});
  ASSERT_TRUE(grows.ok());
  EXPECT_EQ(grows->segments[0].alpha_s, 0);
  EXPECT_GT(grows->segments[0].beta_s, 0);
}

TEST(Fit, gives_a_segment_of_one_size_to_its_neighbour) {
  const auto link = fit_link("tcp", std::vector<Timing>{{8, 1e-6, 0},  // alone up to 56
                                                        {1024, 2e-6, 0},
                                                        {2048, 3e-6, 0},
                                                        {1 << 20, 99e-6, 0}});  // alone, too
  ASSERT_TRUE(link.ok()) << link.status().message();
  ASSERT_EQ(link->segments.size(), 1U);
  EXPECT_TRUE(std::isinf(link->segments[0].most_bytes));
}

TEST(Fit, refuses_what_is_no_line) {
  const auto one = fit_link("shm", std::vector<Timing>{{8, 1e-6, 0}});
  EXPECT_EQ(one.status().message(), "shm: a line needs two sizes, and 1 were measured");
  const auto none = fit_link("shm", std::vector<Timing>{{8, 0, 0}, {16, 1, 0}});
  EXPECT_NE(none.status().message().find("8 bytes took 0 s"), std::string::npos);
}

TEST(Fit, divides_additions_into_reading_and_writing) {
  std::vector<Timing> timings;
  for (const double bytes : {16384.0, 1048576.0})
    for (const double k : {2.0, 3.0, 4.0, 8.0})
      timings.push_back({bytes, bytes * (k * 0.03e-9 + 0.05e-9), k});
  Calibration calibration;
  ASSERT_TRUE(fit_additions(timings, calibration).ok());
  EXPECT_NEAR(calibration.read_s, 0.03e-9, 1e-18);
  EXPECT_NEAR(calibration.write_s, 0.05e-9, 1e-18);
  EXPECT_NEAR(calibration.reduce_residual, 0, 1e-9);
}

Calibration calibration() {
  Calibration c;
  c.host = "here";
  c.cpu = "a CPU";
  c.date = "2026-11-25";
  c.version = "0.1.0";
  c.links = {kLink};
  c.read_s = 0.03e-9;
  c.write_s = 0.05e-9;
  c.copy_s = 0.1e-9;
  c.reduce_residual = 0.02;
  c.cores = 2;
  c.memory_bytes_per_s = 15e9;
  c.hand_over_s = 0.5e-6;
  c.load = 1.5;
  c.factors_link = "shm";
  c.factors = {{1024, 2}, {1 << 20, 4}};
  c.factors_in_turns = {{1024, 3}};
  c.memory_alone = {{1 << 15, 0.01e-9, 0.02e-9}, {1 << 25, 0.03e-9, 0.06e-9}};
  c.memory_shared = {{1 << 15, 0.02e-9, 0.04e-9}};
  return c;
}

TEST(CalibrationFile, is_read_as_it_was_written) {
  const Calibration before = calibration();
  const auto again = read_calibration(to_json(before), "model.json");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->host + again->cpu + again->date + again->version,
            before.host + before.cpu + before.date + before.version);
  ASSERT_EQ(again->links.size(), 1U);
  EXPECT_EQ(again->links[0].name, "shm");
  EXPECT_EQ(again->links[0].points, 16);
  ASSERT_EQ(again->links[0].segments.size(), kLink.segments.size());
  for (const double bytes : kSizes) {
    EXPECT_DOUBLE_EQ(again->links[0].at(bytes).alpha_s, kLink.at(bytes).alpha_s) << bytes;
    EXPECT_DOUBLE_EQ(again->links[0].at(bytes).beta_s, kLink.at(bytes).beta_s) << bytes;
  }
  EXPECT_DOUBLE_EQ(again->links[0].overhead_s, kLink.overhead_s);
  EXPECT_DOUBLE_EQ(again->read_s, before.read_s);
  EXPECT_DOUBLE_EQ(again->write_s, before.write_s);
  EXPECT_DOUBLE_EQ(again->copy_s, before.copy_s);
  EXPECT_EQ(again->cores, 2);
  EXPECT_DOUBLE_EQ(again->memory_bytes_per_s, before.memory_bytes_per_s);
  EXPECT_DOUBLE_EQ(again->hand_over_s, before.hand_over_s);
  EXPECT_DOUBLE_EQ(again->load, before.load);
  ASSERT_EQ(again->factors.size(), 2U);
  EXPECT_DOUBLE_EQ(again->factor_at("shm", 1 << 20, false), 4);
  EXPECT_DOUBLE_EQ(again->factor_at("shm", 1 << 20, true), 3);
  EXPECT_DOUBLE_EQ(again->memory_at(1 << 25, false).read_s, 0.03e-9);
  EXPECT_DOUBLE_EQ(again->memory_at(1 << 25, false).write_s, 0.06e-9);
  EXPECT_DOUBLE_EQ(again->memory_at(1 << 25, true).write_s, 0.04e-9);
  EXPECT_EQ(again->residuals(), "shm 0 %, additions 2 %");
  EXPECT_EQ(again->find("tcp"), nullptr);
}

TEST(CalibrationFile, of_an_earlier_version_has_no_memory_rates_and_one_list_of_factors) {
  nlohmann::json json = nlohmann::json::parse(to_json(calibration()));
  json.erase("memory");
  json["collectives"].erase("factors_in_turns");
  const auto old = read_calibration(json.dump(), "model.json");
  ASSERT_TRUE(old.ok()) << old.status().message();
  EXPECT_TRUE(old->memory_alone.empty());
  EXPECT_DOUBLE_EQ(old->factor_at("shm", 1 << 20, true), 4);
}

TEST(CollectiveFactors, lie_on_a_line_over_the_logarithms) {
  const Calibration c = calibration();
  EXPECT_DOUBLE_EQ(c.factor_at("shm", 8, false), 2);
  EXPECT_NEAR(c.factor_at("shm", 32768, false), std::sqrt(2.0 * 4.0), 1e-12);
  EXPECT_DOUBLE_EQ(c.factor_at("shm", 1 << 30, false), 4);
  EXPECT_DOUBLE_EQ(c.factor_at("tcp", 32768, false), 1);
}

TEST(MemoryRates, lie_on_a_line_over_the_logarithms) {
  const Calibration c = calibration();
  EXPECT_DOUBLE_EQ(c.memory_at(1, false).read_s, 0.01e-9);
  EXPECT_NEAR(c.memory_at(1 << 20, false).read_s, 0.02e-9, 1e-18);
  EXPECT_NEAR(c.memory_at(1 << 20, false).write_s, 0.04e-9, 1e-18);
  EXPECT_DOUBLE_EQ(c.memory_at(1e12, false).write_s, 0.06e-9);
}

struct Mistake {
  std::string_view part, instead, message;
};
class CalibrationMistake : public ::testing::TestWithParam<Mistake> {};
INSTANTIATE_TEST_SUITE_P(
    All, CalibrationMistake,
    ::testing::Values(
        Mistake{"anyccl.calibration/1", "anyccl.machine/1", "m.json: not a JSON object with"},
        Mistake{"\"cores\": 2", "\"cores\": 0", "m.json: contention.cores is 0, not at least 1"},
        Mistake{"\"cores\": 2", "\"cores\": 1.5",
                "m.json: contention.cores is 1.5, not a whole number from 0 to 16777216"},
        Mistake{"\"cores\": 2", "\"cores\": 16777217",
                "m.json: contention.cores is 16777217, not a whole number from 0 to 16777216"},
        Mistake{"\"copy_ns_per_byte\": 0.1", "\"copy_ns_per_byte\": -1",
                "m.json: processor.copy_ns_per_byte is -1, not a number of at least 0"},
        Mistake{"\"bytes\": 33554432.0", "\"bytes\": 5", "m.json: memory.alone[1].bytes is "},
        Mistake{"\"shared\"", "\"scared\"", "m.json: memory.shared is missing, not a list"},
        Mistake{"\"host\"", "\"ghost\"", "m.json: host is missing, not a text"},
        Mistake{"\"up_to_bytes\": 2048.0", "\"up_to_bytes\": 8",
                "m.json: links[0].segments[1].up_to_bytes is 8, not above the one before"},
        Mistake{"\"up_to_bytes\": null", "\"up_to_bytes\": 9e9",
                "m.json: links[0].segments[5].up_to_bytes is 9000000000.0, not null in the last"},
        Mistake{"\"contention\"", "\"confusion\"",
                "m.json: contention is missing, not an object"}));

TEST_P(CalibrationMistake, is_named_with_file_key_and_remedy) {
  std::string text = to_json(calibration());
  const std::size_t at = text.find(GetParam().part);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, GetParam().part.size(), GetParam().instead);
  const auto read = read_calibration(text, "m.json");
  ASSERT_FALSE(read.ok());
  const std::string message(read.status().message());
  EXPECT_EQ(message.substr(0, GetParam().message.size()), GetParam().message);
  EXPECT_NE(message.find("anyccl tune --calibrate"), std::string::npos) << message;
}

TEST(CalibrationFile, whose_links_are_no_objects_is_refused) {
  const auto read = read_calibration(
      R"({"format": "anyccl.calibration/1", "host": "", "cpu": "", "date": "", "version": "", "links": [5]})",
      "m.json");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(
      read.status().message(),
      "m.json: links[0].name is missing, not a text; measure again with anyccl tune --calibrate");
}

}  // namespace
}  // namespace anyccl::cli
