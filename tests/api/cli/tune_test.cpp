// `anyccl tune`, and what other verbs say afterwards.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

namespace fs = std::filesystem;

/// With a cache folder of its own.
class Tune : public testing::Test {
 protected:
  Tune() {
    ::unsetenv("ANYCCL_TUNER_TABLE");
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }

  std::vector<std::string> tables() const {
    std::vector<std::string> names;
    if (fs::exists(folder_.path() + "/anyccl"))
      for (const auto& entry : fs::directory_iterator(folder_.path() + "/anyccl"))
        names.push_back(entry.path());
    return names;
  }

  test::TemporaryFolder folder_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Tune, writes_a_table_that_the_next_start_chooses_by) {
  Tool tool(
      {"tune", "all_reduce", "barrier", "--ranks", "2", "--seconds", "16", "-b", "64", "-e", "64"});
  ASSERT_EQ(tool.finish(), 0) << tool.err();
  ASSERT_EQ(tables().size(), 1U);
  const std::string file = tables()[0];
  EXPECT_TRUE(has(tool.out(), file)) << tool.out();
  EXPECT_TRUE(has(tool.out(), " of 2 places ")) << tool.out();  // 64 bytes, a barrier
  EXPECT_TRUE(has(tool.err(), " left: 2 ranks, ")) << tool.err();

  Tool explain({"explain", "all_reduce", "-n", "2", "--bytes", "64", "--json"});
  ASSERT_EQ(explain.finish(), 0) << explain.err();
  const auto answer = nlohmann::json::parse(explain.out());
  EXPECT_TRUE(has(answer["reason"], file)) << answer["reason"];
  for (const auto& candidate : answer["candidates"])
    EXPECT_EQ(candidate["measured_us"].is_number(), candidate["possible"].get<bool>()) << candidate;
  Tool info({"info"});
  ASSERT_EQ(info.finish(), 0);
  EXPECT_TRUE(has(info.out(), "chosen by measurements in " + file)) << info.out();
}

TEST_F(Tune, writes_where_it_is_told_to) {
  const std::string file = folder_.path() + "/here.json";
  Tool tool({"tune", "barrier", "--ranks", "2,3", "--seconds", "1", "--output", file});
  ASSERT_EQ(tool.finish(), 0) << tool.err();
  EXPECT_TRUE(fs::exists(file));
  EXPECT_TRUE(has(tool.out(), "ANYCCL_TUNER_TABLE=" + file)) << tool.out();
  EXPECT_TRUE(tables().empty());
}

TEST_F(Tune, leaves_nothing_when_it_is_interrupted) {
  Tool tool({"tune", "--ranks", "2", "--seconds", "60"});
  ASSERT_TRUE(tool.says(" left: 2 ranks, ")) << tool.err();
  tool.signal(SIGINT);
  EXPECT_EQ(tool.finish(), 128 + SIGINT);
  EXPECT_TRUE(has(tool.err(), "nothing was written")) << tool.err();
  EXPECT_TRUE(tables().empty());
}

/// The calibration in a file, with plausible constants.
nlohmann::json calibration_in(const std::string& file) {
  std::ifstream in(file);
  const auto json = nlohmann::json::parse(in, nullptr, false);
  EXPECT_TRUE(json.is_object()) << file;
  if (!json.is_object()) return json;
  EXPECT_EQ(json["format"], "anyccl.calibration/1");
  for (const auto& link : json["links"]) {
    EXPECT_GT(link["segments"].size(), 2U);
    EXPECT_GT(link["segments"].back()["beta_ns_per_byte"].get<double>(), 0);
    EXPECT_GT(link["points"], 10);
  }
  EXPECT_GT(json["processor"]["copy_ns_per_byte"].get<double>(), 0);
  EXPECT_GT(json["contention"]["memory_GBps"].get<double>(), 0);
  return json;
}

TEST_F(Tune, writes_a_model_that_simulations_use) {
  const std::string file = folder_.path() + "/model.json", rows = folder_.path() + "/rows.json";
  Tool tool({"tune", "--calibrate", "--validate", "reduce", "--ranks", "2", "-b", "1K", "-e", "1K",
             "--seconds", "12", "-o", file, "--rows", rows});
  ASSERT_EQ(tool.finish(), 0) << tool.err();
  const auto model = calibration_in(file);
  ASSERT_EQ(model["links"].size(), 2U);
  EXPECT_EQ(model["links"][0]["name"], "shm");
  EXPECT_EQ(model["links"][1]["name"], "tcp");
  EXPECT_TRUE(has(tool.out(), "residuals: shm ")) << tool.out();
  EXPECT_TRUE(has(tool.out(), "up to 4 ranks, as were fitted")) << tool.out();
  EXPECT_GT(model["collectives"]["factors"][0]["factor"].get<double>(), 0);
  EXPECT_GT(model["memory"]["alone"].size(), 5U);
  EXPECT_EQ(model["memory"]["alone"].size(), model["memory"]["shared"].size());
  EXPECT_TRUE(fs::exists(rows));

  const auto simulated = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"simulate", "all_reduce/ring", "-n", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Tool simulate(arguments);
    EXPECT_EQ(simulate.finish(), 0) << simulate.err();
    return simulate.out();
  };
  EXPECT_TRUE(has(simulated({}), "estimate; uncalibrated"));
  const std::string here = simulated({"--model", file});
  EXPECT_TRUE(has(here, "estimate; calibrated on ")) << here;
  EXPECT_TRUE(has(here, "residuals: shm ")) << here;
  EXPECT_TRUE(has(here, "all ranks on one host")) << here;
  EXPECT_NE(simulated({"--model", file, "--inside", "tcp"}), here);
}

TEST_F(Tune, calibrates_the_links_of_a_job) {
  const std::string file = folder_.path() + "/model.json";
  Tool tool({"run", "-n", "4", "--", ANYCCL_TOOL, "tune", "--calibrate", "-o", file});
  ASSERT_EQ(tool.finish(), 0) << tool.err();
  const auto model = calibration_in(file);
  ASSERT_EQ(model["links"].size(), 1U);  // all ranks are on this host
  EXPECT_EQ(model["links"][0]["name"], "shm");
  EXPECT_TRUE(model["collectives"].is_null());
}

TEST_F(Tune, says_what_is_wrong_with_a_model) {
  const std::string file = folder_.path() + "/model.json";
  std::ofstream(file) << R"({"format": "anyccl.machine/1"})";
  Tool tool({"simulate", "all_reduce/ring", "--model", file});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(has(tool.err(), file + ": not a JSON object with")) << tool.err();
  EXPECT_TRUE(has(tool.err(), "anyccl tune --calibrate")) << tool.err();
  Tool alone({"simulate", "all_reduce/ring", "--inside", "tcp"});
  EXPECT_EQ(alone.finish(), 2);
  EXPECT_TRUE(has(alone.err(), "--inside names a link of --model")) << alone.err();
}

TEST_F(Tune, says_what_is_wrong) {
  for (const auto& [arguments, words] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"tune", "magic"}, "magic"},
           {{"tune", "--ranks", "1"}, "--ranks"},
           {{"tune", "-b", "many"}, "'many' is not a size"},
           {{"tune", "--validate"}, "--calibrate"},
           {{"tune", "--calibrate", "--validate", "all_gather"}, "not all_gather"},
           {{"tune", "--calibrate", "-o", "/dev/null/model.json"}, "/dev/null"},
           {{"tune", "-o", "/dev/null/table.json"}, "/dev/null"}}) {
    Tool tool(arguments);
    EXPECT_NE(tool.finish(), 0);
    EXPECT_TRUE(has(tool.err(), words)) << tool.err();
  }
  ::setenv("RANK", "0", 1);
  Tool rank({"tune"});
  ::unsetenv("RANK");
  EXPECT_EQ(rank.finish(), 2);
  EXPECT_TRUE(has(rank.err(), "starts its ranks itself")) << rank.err();
}

}  // namespace
}  // namespace anyccl::cli
