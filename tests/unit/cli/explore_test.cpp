#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "algorithm/catalog/algorithm.hpp"
#include "draw/movement.hpp"
#include "explore/explorer.hpp"
#include "explore/packed.hpp"
#include "explore/recorded.hpp"
#include "simulate/read_network.hpp"

namespace anyccl::cli {
namespace {

ExplorerSetting small(std::vector<const Algorithm*> algorithms) {
  return {.algorithms = std::move(algorithms),
          .ranks = {2, 4},
          .roots = {1, 3},
          .ranks_per_host = {2},
          .bytes = {1024},
          .topologies = {{"flat", "flat"}},
          .traces = {},
          .machine = {},
          .machine_name = {}};
}

nlohmann::json data_of(const ExplorerSetting& setting) {
  const Result<std::string> data = explorer_data(setting);
  EXPECT_TRUE(data.ok()) << data.status().message();
  return nlohmann::json::parse(data.ok() ? *data : "{}");
}

const Algorithm* algorithm(Collective collective, std::string_view name) {
  return find_algorithm(collective, name);
}

/// The shapes of the only algorithm: ranks, root and ranks per host.
std::string variants_of(const ExplorerSetting& setting) {
  std::string text;
  const nlohmann::json data = data_of(setting);
  for (const auto& v : data["algorithms"][0]["variants"])
    text += v["ranks"].dump() + ":" + v["root"].dump() + ":" + v["ranksPerHost"].dump() + " ";
  return text;
}

TEST(PackedNumbers, below_60_are_one_character) {
  EXPECT_EQ(PackedNumbers().add(0).add(9).add(59).text(), "09x");
}

TEST(PackedNumbers, have_digits_of_base_30_before_the_last_one) {
  EXPECT_EQ(PackedNumbers().add(60).add(119).text(), "z0zx");
  EXPECT_EQ(PackedNumbers().add(60 * 30).text(), "zy0");
}

TEST(PackedNumbers, of_64_bits_fit) {
  EXPECT_EQ(PackedNumbers().add(~std::uint64_t{0}).text().size(), 13U);
}

TEST(Movement, numbers_the_messages_of_each_pair_from_0) {
  for (const Algorithm* a : all_algorithms()) {
    const Shape shape{a->collective, 8};
    if (!a->supports(shape)) continue;
    const Result<Movement> movement = movement_of(*a, shape);
    ASSERT_TRUE(movement.ok());
    std::map<std::pair<Rank, Rank>, std::vector<bool>> seen;
    for (const Message& m : movement->messages) {
      auto& numbers = seen[{m.from, m.to}];
      numbers.resize(std::max<std::size_t>(numbers.size(), m.number + 1));
      EXPECT_FALSE(numbers[m.number]) << id(*a);
      numbers[m.number] = true;
    }
    for (const auto& [pair, numbers] : seen)
      EXPECT_EQ(std::count(numbers.begin(), numbers.end(), false), 0) << id(*a);
  }
}

TEST(ExplorerData, has_what_happens_at_which_time) {
  ExplorerSetting setting = small({algorithm(Collective::all_reduce, "ring")});
  setting.ranks = {2};
  const nlohmann::json data = data_of(setting);
  // 5 us and 512 bytes at 25 GB/s, twice
  EXPECT_EQ(data["clocks"][0], PackedNumbers().add(0).add(5020).add(5021).text());
  PackedNumbers pattern;
  for (const int tick : {0, 0, 1, 1}) pattern.add(static_cast<std::uint64_t>(tick)).add(1);
  for (int rank = 0; rank < 2; ++rank) pattern.add(2).add(0).add(1).add(1).add(1);  // waits
  pattern.add(0).add(0);                                                            // additions
  EXPECT_EQ(data["patterns"][0], pattern.text());
}

TEST(ExplorerData, has_the_links_between_each_two_ranks) {
  ExplorerSetting setting = small({algorithm(Collective::all_reduce, "ring")});
  setting.ranks = {2};
  // Links 0 and 1 go up to the switch, 2 and 3 down from it.
  EXPECT_EQ(data_of(setting)["networks"]["2"][0]["placements"][0][1],
            PackedNumbers().add(2).add(0).add(3).add(2).add(1).add(2).text());
}

TEST(ExplorerData, has_the_ends_and_links_of_each_placement) {
  ExplorerSetting setting = small({algorithm(Collective::all_reduce, "ring")});
  setting.ranks = {2};
  setting.topologies = {{"ring", "ring:ends=8"}};
  setting.placements = {"linear", "random:2"};
  const nlohmann::json data = data_of(setting);
  EXPECT_EQ(data["placements"], (nlohmann::json{"linear", "random:2"}));
  const auto& placements = data["networks"]["2"][0]["placements"];
  ASSERT_EQ(placements.size(), 2U);
  EXPECT_EQ(placements[0][0], PackedNumbers().add(0).add(1).text());
  const std::vector<std::uint32_t> place = *read_placement("random:2", 2, 8);
  EXPECT_EQ(placements[1][0], PackedNumbers().add(place[0]).add(place[1]).text());
  EXPECT_NE(placements[0][1], placements[1][1]);
}

TEST(ExplorerData, refuses_a_placement_that_is_none) {
  ExplorerSetting setting = small({algorithm(Collective::all_reduce, "ring")});
  setting.placements = {"anywhere"};
  EXPECT_EQ(explorer_data(setting).status().code(), Code::invalid_argument);
}

TEST(ExplorerData, leaves_out_roots_of_collectives_without_one) {
  EXPECT_EQ(variants_of(small({algorithm(Collective::all_reduce, "ring")})), "2:0:0 4:0:0 ");
}

TEST(ExplorerData, has_the_roots_that_are_ranks) {
  EXPECT_EQ(variants_of(small({algorithm(Collective::broadcast, "flat")})),
            "2:0:0 2:1:0 4:0:0 4:1:0 4:3:0 ");
}

TEST(ExplorerData, has_several_hosts_where_they_make_a_difference) {
  EXPECT_EQ(variants_of(small({algorithm(Collective::all_reduce, "two_level")})),
            "2:0:0 4:0:0 4:0:2 ");
}

TEST(ExplorerData, leaves_out_ranks_that_an_algorithm_does_not_support) {
  ExplorerSetting setting = small({algorithm(Collective::all_reduce, "hypercube")});
  setting.ranks = {3, 4};
  EXPECT_EQ(variants_of(setting), "4:0:0 ");
}

TEST(ExplorerData, refuses_ranks_that_no_algorithm_supports) {
  ExplorerSetting setting = small({algorithm(Collective::all_reduce, "hypercube")});
  setting.ranks = {3};
  const Result<std::string> data = explorer_data(setting);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.status().code(), Code::invalid_argument);
  EXPECT_EQ(data.status().message(), "none of these algorithms supports 3 ranks");
}

TEST(ExplorerData, refuses_a_topology_without_room) {
  ExplorerSetting setting = small({algorithm(Collective::all_reduce, "ring")});
  setting.topologies = {{"small", "torus:dims=3"}};
  const Result<std::string> data = explorer_data(setting);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.status().message(), "torus:dims=3 has room for 3 ranks, not for 4");
}

TEST(ExplorerData, calls_a_topology_by_its_name_and_its_description) {
  ExplorerSetting setting = small({algorithm(Collective::all_reduce, "ring")});
  setting.topologies = {
      {"my.json", R"({"format": "anyccl.topology/1", "kind": "ring", "params": {}})"}};
  const nlohmann::json data = data_of(setting);
  EXPECT_EQ(data["topologies"][0], "my.json");
  EXPECT_EQ(data["networks"]["4"][0]["text"], "ring:ends=4");
}

/// A rank's collectives 1, 2, ..., each 10 ns after the one before it and 4 ns long.
RankTrace trace_of(int rank, std::int64_t first_ns, std::size_t calls) {
  RankTrace trace;
  trace.communicator = "c";
  trace.rank = rank;
  trace.size = 2;
  for (std::size_t i = 0; i < calls; ++i) {
    TracedCall call;
    call.sequence = i + 1;
    call.kind = "barrier";
    call.started_ns = first_ns + 10 * static_cast<std::int64_t>(i);
    call.ended_ns = call.started_ns + 4;
    call.details = "{}";
    trace.calls.push_back(call);
  }
  return trace;
}

TEST(Recorded, calls_of_all_ranks_belong_to_operations_in_the_order_of_their_begins) {
  RankTrace other = trace_of(1, 103, 2);
  TracedCall message = other.calls[0];  // to a rank whose trace is not there
  message.sequence = 0;
  message.kind = "send";
  message.started_ns = 105;
  message.ended_ns = 106;
  other.calls.push_back(message);
  const auto one = recorded_json({trace_of(0, 100, 2), other})[0];
  EXPECT_EQ(one["title"], "c");
  EXPECT_EQ(one["leftOut"], 0);
  EXPECT_EQ(one["names"].dump(), R"([["barrier",0,"","",-1],["send",0,"","",-1]])");
  PackedNumbers first, second;  // operation, name, ns after the call before it, ns
  for (const int n : {0, 0, 0, 4, 2, 0, 10, 4}) first.add(static_cast<std::uint64_t>(n));
  for (const int n : {0, 0, 3, 4, 1, 1, 2, 1, 2, 0, 8, 4})
    second.add(static_cast<std::uint64_t>(n));
  EXPECT_EQ(one["calls"], (nlohmann::ordered_json{first.text(), second.text()}));
}

TEST(Recorded, of_too_many_calls_the_last_operations_are_kept_whole) {
  const std::size_t calls = kMostRecorded / 2 + 5;
  RankTrace second = trace_of(1, 103, calls);
  second.left_out = 7;
  const auto one = recorded_json({trace_of(0, 100, calls), second})[0];
  EXPECT_EQ(one["leftOut"], 10 + 7);
  const std::string text = one["calls"][0];
  PackedNumbers first;  // at the time of its operation, which is 0 again
  for (const int n : {0, 0, 0, 4}) first.add(static_cast<std::uint64_t>(n));
  EXPECT_TRUE(text.starts_with(first.text())) << text.substr(0, 20);
}

TEST(Recorded, communicators_share_the_room) {
  RankTrace other = trace_of(0, 100, kMostRecorded / 2 + 1);
  other.communicator = "d";
  const auto all = recorded_json({trace_of(0, 100, kMostRecorded / 2), other});
  EXPECT_EQ(all[0]["leftOut"], 0);
  EXPECT_EQ(all[1]["leftOut"], 1);
}

TEST(ExplorerPage, has_no_end_of_a_script_in_its_data) {
  const Result<std::string> page = explorer_page(R"({"name":"</script><b>"})");
  ASSERT_TRUE(page.ok());
  EXPECT_NE(page->find(R"({"name":"\u003c/script>\u003cb>"})"), std::string::npos);
}

TEST(ExplorerPage, has_no_mark_left_to_fill_in) {
  const Result<std::string> page = explorer_page("{}");
  ASSERT_TRUE(page.ok());
  for (const char* mark : {"STYLE-HASH", "SCRIPT-HASH", "STYLE-TEXT", "DATA-TEXT", "SCRIPT-TEXT"})
    EXPECT_EQ(page->find(mark), std::string::npos) << mark;
}

}  // namespace
}  // namespace anyccl::cli
