#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../../unit/cli/well_formed.hpp"
#include "support/temporary_folder.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What the tool prints; it must succeed.
std::string plan(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "plan");
  Tool tool(std::move(arguments));
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  return tool.out();
}

// The course's example: 671e9 parameters, 61 layers of 10 ms and 3 ms, 2048 devices.
const std::vector<std::string> kCourse = {"-m", "deepseek-v3", "-c", "h800", "--layer-ms", "10,3"};

std::vector<std::string> with(std::vector<std::string> arguments,
                              std::initializer_list<const char*> more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Plan, shows_what_overlap_gains_in_the_courses_example) {
  const std::string text = plan(kCourse);
  for (const char* part :
       {"671e9 parameters", "2048 x H800", "793.0  x1.00", "613.0  x1.29", "610.0  x1.30", "784.0",
        "23.1 %", "within the 30 % rule", "374.8 device-seconds"})
    EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
}

TEST(Plan, shows_the_cost_of_one_call_for_several_layers) {
  const Json json = Json::parse(plan(with(kCourse, {"--latency-ms", "0.2", "--json"})));
  EXPECT_DOUBLE_EQ(json.at("calls").at(0).at("time_s"), 0.613);
  EXPECT_EQ(json.at("calls").back().at("layers"), 61);
  EXPECT_NEAR(json.at("calls").back().at("time_s").get<double>(), 0.781, 1e-12);
}

TEST(Plan, names_the_remedies_where_communication_takes_more_than_30_percent) {
  const std::string text = plan({"-m", "deepseek-v3", "--layer-ms", "10,6"});
  for (const char* part : {"37.5 %", "above the 30 % rule", "accumulate", "network", "layout"})
    EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
}

const std::vector<std::string> kStep = {"-m",   "llama3-405b", "-n",  "16384", "--tp",
                                        "8",    "--pp",        "16",  "--sp",  "--batch",
                                        "2048", "--seq",       "8192"};

TEST(Plan, prints_parts_that_add_up_to_the_step) {
  const Json json = Json::parse(plan(with(kStep, {"--json"})));
  double sum = json.at("compute_s").get<double>() + json.at("bubble_s").get<double>();
  for (const Json& row : json.at("traffic")) sum += row.at("exposed_s").get<double>();
  EXPECT_NEAR(json.at("time_s"), sum, 1e-9);
  EXPECT_EQ(json.at("layout").at("dp"), 128);
  EXPECT_EQ(json.at("layout").at("micro_batches"), 16);
}

TEST(Plan, says_that_it_only_estimates) {
  const std::string text = plan(kStep);
  EXPECT_TRUE(contains(text, "An estimate: nothing was measured")) << text;
  EXPECT_TRUE(contains(text, "ReduceScatter, AllGather  between hosts  18.88")) << text;
  EXPECT_TRUE(contains(text, "TOO LARGE")) << text;
}

TEST(Plan, lists_the_best_layouts) {
  const Json json = Json::parse(plan({"-m", "llama3-8b", "-n", "16", "--search", "--json"}));
  EXPECT_EQ(json.at("best").size(), 10U);
  for (const Json& one : json.at("best"))
    EXPECT_TRUE(one.at("memory_bytes").at("fits").get<bool>());
}

TEST(Plan, draws_well_formed_pictures) {
  for (const auto& arguments :
       {kCourse, kStep, with(kStep, {"--schedule", "interleaved:4"}),
        std::vector<std::string>{"-m", "llama3-8b", "-n", "16", "--search"}}) {
    const std::string picture = plan(with(arguments, {"--svg"}));
    EXPECT_TRUE(picture.starts_with("<svg ")) << picture.substr(0, 80);
    EXPECT_EQ(XmlReader(picture).fault(), "");
  }
}

TEST(Plan, draws_every_micro_batch_on_every_stage) {
  const std::string picture = plan(with(kStep, {"--svg"}));
  EXPECT_TRUE(contains(picture, ">stage 15</text>"));
  EXPECT_TRUE(contains(picture, "<title>backward of micro-batch 15, chunk 0: "));
}

/// A file in the test's folder, until the test ends.
class TextFile {
 public:
  TextFile(const char* name, const std::string& text) : path_(folder_.path() + "/" + name) {
    std::ofstream(path_) << text;
  }
  const std::string& path() const { return path_; }

 private:
  const test::TemporaryFolder folder_;  // tests run side by side
  const std::string path_;
};

const char* const kModel =
    R"({"format": "anyccl.model/1", "name": "mine", "layers": 4, "hidden": 1024,
  "ffn": 4096, "heads": 16, "vocab": 32000})";
const char* const kCluster =
    R"({"format": "anyccl.cluster/1", "name": "ours", "devices": 4, "devices_per_host": 2,
  "device": {"name": "D", "bf16_TFLOPs": 100, "memory_GB": 40, "memory_GBps": 1000,
             "best_efficiency": 0.7, "half_hidden": 1000},
  "inside": {"GBps": 50, "latency_us": 2}, "between": {"GBps": 10, "latency_us": 10}})";

TEST(Plan, reads_models_and_clusters_from_files) {
  const TextFile model("plan_model.json", kModel), cluster("plan_cluster.json", kCluster);
  const std::string text = plan({"-m", model.path(), "-c", cluster.path(), "--tp", "2"});
  EXPECT_TRUE(contains(text, "4 x D, 2 on a host")) << text;
}

const char* const kCalibration =
    R"({"format": "anyccl.calibration/1", "host": "h0", "cpu": "", "date": "2026-11-26", "version": "0.1.0",
  "links": [{"name": "tcp", "overhead_us": 1, "residual_percent": 4, "points": 18, "segments": [
    {"up_to_bytes": 56, "alpha_us": 30, "beta_ns_per_byte": 0},
    {"up_to_bytes": null, "alpha_us": 0, "beta_ns_per_byte": 8}]}],
  "processor": {"reduce_read_ns_per_byte": 0, "reduce_write_ns_per_byte": 0, "reduce_residual_percent": 0,
    "copy_ns_per_byte": 0},
  "contention": {"cores": 2, "memory_GBps": 10, "hand_over_us": 1, "load": 0}, "collectives": null})";

TEST(Plan, takes_measured_links_from_a_calibration) {
  const TextFile model("plan_model.json", kModel), cluster("plan_cluster.json", kCluster),
      calibration("calibration.json", kCalibration);
  const std::vector<std::string> arguments = {"-m", model.path(), "-c", cluster.path()};
  const auto between_s = [](const Json& json) {
    double sum = 0;
    for (const Json& row : json.at("traffic"))
      if (row.at("between_hosts").get<bool>()) sum += row.at("time_s").get<double>();
    return sum;
  };
  const Json before = Json::parse(plan(with(arguments, {"--json"})));
  const Json after =
      Json::parse(plan(with(arguments, {"--json", "--calibration", calibration.path().c_str()})));
  EXPECT_TRUE(before.at("measured_links").is_null());
  EXPECT_GT(between_s(before), 0);
  EXPECT_NEAR(between_s(after) / between_s(before), 10 / 0.125, 1);  // 8 ns/B are 0.125 GB/s
  EXPECT_TRUE(contains(
      plan(with(arguments, {"--calibration", calibration.path().c_str()})),
      "nothing was measured but links (between: tcp of h0 on 2026-11-26, fitted within 4 %, "
      "0.125 GB/s and 30 us)."));
}

TEST(Plan, names_the_link_that_a_calibration_lacks) {
  const TextFile calibration("calibration.json", kCalibration);
  Tool tool(
      {"plan", "-m", "llama3-8b", "--calibration", calibration.path(), "--measured", "inside"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "has no link shm, which is what 'inside' would be"))
      << tool.err();
}

TEST(Plan, writes_what_it_would_print) {
  const TextFile file("plan_out.txt", "");
  EXPECT_EQ(plan(with(kCourse, {"-o", file.path().c_str()})), "");
  std::ostringstream text;
  text << std::ifstream(file.path()).rdbuf();
  EXPECT_EQ(text.str(), plan(kCourse));
}

TEST(Plan, names_the_file_that_it_cannot_write) {
  Tool tool({"plan", "-m", "llama3-8b", "-o", "/nowhere/at/all"});
  EXPECT_EQ(tool.finish(), 1);
  EXPECT_TRUE(contains(tool.err(), "write /nowhere/at/all: No such file")) << tool.err();
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string why;
};
void expect_refused(const Mistake& mistake) {
  std::vector<std::string> arguments = mistake.arguments;
  arguments.insert(arguments.begin(), "plan");
  Tool tool(arguments);
  EXPECT_EQ(tool.finish(), 2) << tool.out();
  EXPECT_EQ(tool.out(), "");
  EXPECT_TRUE(contains(tool.err(), mistake.why)) << tool.err();
}

class PlanMistake : public ::testing::TestWithParam<Mistake> {};
INSTANTIATE_TEST_SUITE_P(
    Arguments, PlanMistake,
    ::testing::Values(
        Mistake{{"-m", "gpt5"}, "'gpt5' is no file that can be read; the presets are llama3-8b, "},
        Mistake{{"-m", "/"}, "'/' is no file that can be read"},
        Mistake{{"-m", "llama3-8b", "-c", "moon"}, "the presets are a100, h100, h800"},
        Mistake{{"-m", "llama3-8b", "--tp", "7"}, "must divide 64 devices"},
        Mistake{{"-m", "llama3-8b", "--tp", "1048576", "--cp", "1048576", "--pp", "1048576"},
                "must divide 64 devices"},
        Mistake{{"-m", "gpt3-175b", "--tp", "64", "-n", "64"}, "must divide 96 attention heads"},
        Mistake{{"-m", "llama3-8b", "--ep", "2"}, "llama3-8b has no experts"},
        Mistake{{"-m", "mixtral-8x7b", "--ep", "16"}, "--ep 16 must divide 8 experts"},
        Mistake{{"-m", "mixtral-8x7b", "--ep", "8", "-n", "4"}, "must divide 4 data and context"},
        Mistake{{"-m", "llama3-8b", "--batch", "100"}, "must be a multiple of dp 64 x --micro 1"},
        Mistake{{"-m", "llama3-8b", "--cp", "64", "--seq", "100"},
                "--seq 100 must be a multiple of 64"},
        Mistake{{"-m", "llama3-8b", "--pp", "64"}, "32 layers are too few for 64 stages"},
        Mistake{{"-m", "llama3-8b", "--schedule", "best"}, "it must be gpipe, 1f1b, "},
        Mistake{{"-m", "llama3-8b", "--pp", "8", "--schedule", "interleaved:2", "--batch", "8"},
                "1 micro-batches must be a multiple of --pp 8"},
        Mistake{{"-m", "llama3-8b", "--pp", "16", "--schedule", "dualpipe", "--batch", "4"},
                "must be even and not above 1 micro-batches"},
        Mistake{{"-m", "llama3-8b", "-c", "a100", "--precision", "fp8"}, "A100 has none"},
        Mistake{{"-m", "llama3-8b", "--layer-ms", "10,0"}, "both times must be numbers above 0"},
        Mistake{{"-m", "llama3-8b", "--layer-ms", "nan,3"}, "'nan' is not a number"},
        Mistake{{"-m", "llama3-8b", "--layer-ms", "10,3", "--latency-ms", "nan"},
                "'nan' is not a number"},
        Mistake{{"-m", "llama3-8b", "--imbalance", "nan"}, "'nan' is not a number"},
        Mistake{{"-m", "llama3-8b", "--layer-ms", "10,3", "--latency-ms", "4"},
                "a part of the 3 ms of communication"},
        Mistake{{"-m", "llama3-8b", "-n", "37", "--batch", "1", "--search"},
                "there is no layout of llama3-8b"},
        Mistake{{"-m", "llama3-8b", "--json", "--svg"}, "excludes"},
        Mistake{{}, "--model is required"}));

TEST_P(PlanMistake, is_refused_in_words) {
  expect_refused(GetParam());
}

struct WrongFile {
  std::string from, to, why;
};
class PlanFileMistake : public ::testing::TestWithParam<WrongFile> {};
INSTANTIATE_TEST_SUITE_P(
    Keys, PlanFileMistake,
    ::testing::Values(
        WrongFile{"{", "", "is no JSON"},
        WrongFile{"\"layers\": 4,", "", ": the key 'layers' is missing"},
        WrongFile{"4,", "0,", ": 'layers' is 0, but must be a whole number from 1 to "},
        WrongFile{"4,", "\"x\",", ": 'layers' is \"x\", but must be a whole number"},
        WrongFile{"\"mine\"", "\"<b>\"", ": 'name' is \"<b>\", but must be letters, digits"},
        WrongFile{"model/1", "model/2", "but must be \"anyccl.model/1\""},
        WrongFile{"\"vocab\"", "\"vocabulary\"", "the key 'vocab' is missing"},
        WrongFile{"4,", "4, \"width\": 3,", "there is no key 'width'; the keys are format, name, "},
        WrongFile{"4,", "4, \"gated\": 1,", "'gated' is 1, but must be true or false"},
        WrongFile{"4,", "4, \"kv_heads\": 3,", "'kv_heads' must divide 'heads'"},
        WrongFile{"4,", "4, \"moe\": 8,", ": moe: it must be an object"},
        WrongFile{"4,", R"(4, "moe": {"routed": 4, "per_token": 8, "ffn": 1},)",
                  ": moe: 'per_token' is above 'routed'"}));

TEST_P(PlanFileMistake, is_refused_with_file_and_key) {
  std::string text = kModel;
  const WrongFile& wrong = GetParam();
  text.replace(text.find(wrong.from), wrong.from.size(), wrong.to);
  const TextFile file("plan_wrong.json", text);
  expect_refused({{"-m", file.path()}, wrong.why});
  expect_refused({{"-m", file.path()}, file.path()});
}

}  // namespace
}  // namespace anyccl::cli
