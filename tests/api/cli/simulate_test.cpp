#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A file of this test, which is removed at the end.
class File {
 public:
  explicit File(const std::string& name) : path_(folder_.path() + "/" + name) {}
  const std::string& path() const { return path_; }
  std::string text() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  const test::TemporaryFolder folder_;  // tests run side by side
  const std::string path_;
};

/// What `anyccl simulate arguments...` prints.
std::string simulated(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "simulate");
  Tool tool(arguments);
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  return tool.out();
}

TEST(Simulate, prints_the_time_and_says_that_nothing_was_measured) {
  const std::string out = simulated({"all_reduce/ring", "-n", "8", "-b", "1M"});
  EXPECT_TRUE(contains(out, "estimate; uncalibrated; simulated, not measured: flat:ends=8")) << out;
  EXPECT_TRUE(contains(out, "143.400")) << out;
}

TEST(Simulate, takes_the_constants_of_a_file_and_flags_before_it) {
  const File machine("machine.json");
  machine.write(R"({"format": "anyccl.machine/1", "alpha_us": 1, "GBps": 10, "reduce_GBps": 5})");
  const json out = json::parse(simulated({"all_reduce/ring", "-n", "2", "-b", "20000", "--machine",
                                          machine.path(), "--alpha", "3", "--json"}));
  // Two messages of 10,000 bytes, and one addition.
  EXPECT_NEAR(out["rows"][0]["us"].get<double>(), 2 * (3 + 1) + 2, 1e-9);
  EXPECT_TRUE(out["simulated"].get<bool>());
  EXPECT_EQ(out["machine"]["GBps"], 10);
}

/// Beside the times of the simulated driver, which tests/device/modelled_times_test.cpp has.
TEST(Simulate, of_devices_is_near_the_model_of_the_driver) {
  const json rows = json::parse(simulated({"all_reduce/one_shot", "-n", "2", "-b", "8,4M,16M,64M",
                                           "--devices", "model", "--json"}))["rows"];
  const double modelled[] = {30.1, 246, 794, 2994};
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(rows[i]["us"].get<double>() / modelled[i], 1, 0.1) << i;
}

TEST(Simulate, takes_the_constants_of_devices_of_a_file) {
  const File devices("devices.json");
  devices.write(R"({"format": "anyccl.devices/1", "link_GBps": 1, "about": "a slow link"})");
  const json out = json::parse(simulated(
      {"all_gather/direct", "-n", "2", "-b", "64M", "--devices", devices.path(), "--json"}));
  EXPECT_NEAR(out["rows"][0]["us"].get<double>() / (64 << 20) * 1000, 1, 0.1);  // us a kB
  const std::string text =
      simulated({"all_reduce", "-n", "4", "-b", "1M", "--devices", devices.path()});
  EXPECT_TRUE(contains(text, "a link 1 GB/s each way")) << text;
}

TEST(Simulate, by_simgrid_takes_as_long_or_says_how_to_get_it) {
  Tool tool({"simulate", "all_reduce/ring", "-n", "8", "-b", "1M", "--engine", "simgrid"});
  if (tool.finish() == 0) {
    EXPECT_TRUE(contains(tool.out(), "simulated by SimGrid, not measured")) << tool.out();
    EXPECT_TRUE(contains(tool.out(), "143.400")) << tool.out();
  } else {
    EXPECT_TRUE(contains(tool.err(), "libsimgrid-dev")) << tool.err();
    EXPECT_TRUE(contains(tool.err(), "-DANYCCL_WITH_SIMGRID=ON")) << tool.err();
  }
}

TEST(Simulate, reads_the_topology_that_it_wrote) {
  const File topology("topology.json");
  topology.write(simulated({"topology", "-n", "16", "--topology", "torus:dims=4x4", "--json"}));
  const std::vector<std::string> ask = {"all_reduce/halving_doubling", "-n", "16", "--topology"};
  auto by_file = ask, by_text = ask;
  by_file.push_back(topology.path());
  by_text.emplace_back("torus:dims=4x4");
  EXPECT_EQ(simulated(by_file), simulated(by_text));
}

TEST(Simulate, finds_another_winner_where_links_are_shared) {
  const auto winner = [](const std::string& topology) {
    const std::string out =
        simulated({"all_reduce", "-n", "64", "-b", "64M", "--winners", "--topology", topology});
    return out.substr(out.rfind(' ') + 1);
  };
  EXPECT_EQ(winner("flat"), "two_shot\n");
  EXPECT_EQ(winner("ring"), "ring\n");
}

TEST(Simulate, draws_the_links_and_what_they_carried) {
  const File picture("links.svg");
  const std::string out = simulated(
      {"all_reduce/ring", "-n", "4", "--topology", "ring", "--links", "--svg", picture.path()});
  EXPECT_TRUE(contains(out, "rank 0 > router 0")) << out;
  EXPECT_TRUE(contains(picture.text(), "<title>rank 0 - rank 1: 1.573 MB, back 0.000 MB</title>"))
      << picture.text();
}

TEST(Simulate, writes_a_timeline_with_an_arrow_for_each_message) {
  const File trace("timeline.json");
  simulated({"all_reduce/ring", "-n", "3", "--reduce", "50", "--timeline", trace.path()});
  const json events = json::parse(trace.text())["traceEvents"];
  std::map<std::string, int> phases;
  double last = 0;
  for (const json& event : events) {
    ++phases[event["ph"].get<std::string>() + ":" + event["name"].get<std::string>()];
    if (!event.contains("ts")) continue;
    EXPECT_GE(event["ts"].get<double>(), last);
    last = event["ts"].get<double>();
  }
  EXPECT_EQ(phases["s:message"], 3 * 4);
  EXPECT_EQ(phases["f:message"], 3 * 4);
  EXPECT_EQ(phases["X:add"], 3 * 2);
  EXPECT_EQ(phases["X:wait"], 3 * 4);
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string why;
};
class SimulateMistake : public ::testing::TestWithParam<Mistake> {};
INSTANTIATE_TEST_SUITE_P(
    Arguments, SimulateMistake,
    ::testing::Values(
        Mistake{{"all_reduce/magic"}, "there is no algorithm 'all_reduce/magic' (see anyccl info)"},
        Mistake{{"reduce_scatter/recursive_halving", "-n", "6"},
                "needs a power of two, not 6 ranks"},
        Mistake{{"recursive_halving", "-n", "6"}, "none of 'recursive_halving' supports 6 ranks"},
        Mistake{{"all_reduce/ring", "-n", "0"}, "--ranks"},
        Mistake{{"all_reduce/ring", "-b", "x"}, "x"},
        Mistake{{"all_reduce/ring", "-n", "100000"}, "at most 200 million are simulated"},
        Mistake{{"all_reduce/ring", "--topology", "star"},
                "there is no topology 'star', but flat, "},
        Mistake{{"all_reduce/ring", "--topology", "torus:dims=2x2"},
                "torus:dims=2x2 has room for 4 ranks, not for 64"},
        Mistake{{"all_reduce/ring", "--placement", "far"}, "'far' is no placement"},
        Mistake{{"all_reduce", "--links"}, "algorithms, name one of them"},
        Mistake{{"all_reduce/ring", "-n", "2,4", "--links"}, "are of one size and number of ranks"},
        Mistake{{"all_reduce/ring", "-n", "512", "--timeline", "t.json"},
                "too many for a timeline: at most 100000"},
        Mistake{{"topology", "-n", "1024", "--svg", "t.svg"}, "at most 600 are drawn"},
        Mistake{{"broadcast/flat", "-n", "4", "--root", "4"}, "--root 4 is not one of 4 ranks"},
        Mistake{{"all_reduce/ring", "--devices", "model"}, "on 2 to 8 ranks"},
        Mistake{{"all_reduce/ring", "-n", "2", "--devices", "model", "--links"},
                "--devices gives times alone"},
        Mistake{{"all_reduce/ring", "--bandwidth", "0"}, "--bandwidth"}, Mistake{{}, "what"}));

TEST_P(SimulateMistake, is_refused_in_words) {
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.insert(arguments.begin(), "simulate");
  Tool tool(arguments);
  EXPECT_EQ(tool.finish(), 2) << tool.out();
  EXPECT_EQ(tool.out(), "");
  EXPECT_TRUE(contains(tool.err(), GetParam().why)) << tool.err();
}

TEST(Simulate, names_the_file_and_key_that_are_wrong) {
  const File machine("wrong.json");
  for (const auto& [text, why] :
       {std::pair{R"({"format": "anyccl.machine/1", "alpha": 1})",
                  ": there is no alpha, but alpha_us"},
        std::pair{R"({"format": "anyccl.machine/1", "GBps": 0})",
                  ": GBps is 0, not a number above 0"},
        std::pair{"5 us", ": a machine is a JSON object with \"format\": \"anyccl.machine/1\""}}) {
    machine.write(text);
    Tool tool({"simulate", "all_reduce/ring", "--machine", machine.path()});
    EXPECT_EQ(tool.finish(), 2);
    EXPECT_TRUE(contains(tool.err(), machine.path() + why)) << tool.err();
  }
  Tool missing({"simulate", "all_reduce/ring", "--machine", "/nowhere/at/all"});
  EXPECT_EQ(missing.finish(), 1);
  EXPECT_TRUE(contains(missing.err(), "read /nowhere/at/all: No such file")) << missing.err();
}

TEST(Simulate, names_the_file_and_key_of_devices_that_are_wrong) {
  const File devices("wrong.json");
  for (const auto& [text, why] :
       {std::pair{R"({"format": "anyccl.devices/1", "GBps": 1})", ": there is no GBps, but "},
        std::pair{R"({"format": "anyccl.devices/1", "link_GBps": 0})",
                  ": link_GBps is 0, not a number above 0"},
        std::pair{"{}", ": constants of devices are a JSON object with"}}) {
    devices.write(text);
    Tool tool({"simulate", "all_reduce", "-n", "2", "--devices", devices.path()});
    EXPECT_EQ(tool.finish(), 2) << tool.out();
    EXPECT_TRUE(contains(tool.err(), devices.path() + why)) << tool.err();
  }
}

}  // namespace
}  // namespace anyccl::cli
