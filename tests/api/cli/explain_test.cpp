// `anyccl explain`, `info --combinations` and `perf --all-combinations`: what could run, what
// would, and why.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "algorithm/catalog/algorithm.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

using nlohmann::json;

json explained(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "explain");
  arguments.emplace_back("--json");
  Tool tool(arguments);
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  return json::parse(tool.out());
}

TEST(Explain, names_the_chosen_one_and_says_why_not_the_others) {
  const json answer = explained({"all_reduce", "--bytes", "4M", "--ranks", "8"});
  EXPECT_EQ(answer["bytes"], 4 << 20);
  std::size_t chosen = 0, listed = 0;
  for (const json& c : answer["candidates"]) {
    EXPECT_FALSE(c["why"].get<std::string>().empty());
    if (!c["chosen"]) continue;
    ++chosen;
    EXPECT_EQ(c["algorithm"], answer["chosen"]);
  }
  EXPECT_EQ(chosen, 1U);
  for (const Algorithm* a : all_algorithms()) listed += a->collective == Collective::all_reduce;
  EXPECT_EQ(answer["candidates"].size(), listed);
}

TEST(Explain, lists_each_collective_once_in_its_help) {
  Tool tool({"explain", "--help"});
  EXPECT_EQ(tool.finish(), 0);
  std::map<std::string, int> listed;
  const std::string& help = tool.out();
  const std::size_t begin = help.find('{') + 1, end = help.find('}');
  ASSERT_LT(begin, end) << help;
  std::istringstream names(help.substr(begin, end - begin));
  for (std::string name; std::getline(names, name, ',');) ++listed[name];
  std::set<Collective> collectives;
  for (const Algorithm* a : all_algorithms()) collectives.insert(a->collective);
  EXPECT_EQ(listed.size(), collectives.size()) << help;
  for (const auto& [name, times] : listed) EXPECT_EQ(times, 1) << name;
}

TEST(Explain, prints_a_table_for_people) {
  Tool tool({"explain", "broadcast", "-n", "8", "--bytes", "1K"});
  EXPECT_EQ(tool.finish(), 0);
  for (const char* words : {"broadcast of 1024 bytes on 8 ranks", "* flat", "predicted us"})
    EXPECT_NE(tool.out().find(words), std::string::npos) << tool.out();
}

TEST(Explain, takes_places_and_the_users_choice) {
  EXPECT_EQ(explained({"all_reduce", "-n", "6", "--hosts", "3,1,2"})["chosen"],
            "all_reduce/two_level");
  EXPECT_EQ(explained({"all_reduce", "-n", "6", "--hosts", "3,1,2", "--bytes", "8K"})["chosen"],
            "all_reduce/single_leader");
  EXPECT_EQ(explained({"all_reduce", "-n", "32", "--near", "8,8,8,8", "--cores", "32"})["chosen"],
            "all_reduce/two_level");
  EXPECT_EQ(explained({"all_reduce", "-n", "32", "--cores", "4"})["chosen"],
            "all_reduce/reduce_broadcast");
  const json forced = explained({"all_reduce", "-n", "6", "--algo", "ring"});
  EXPECT_EQ(forced["chosen"], "all_reduce/ring");
  EXPECT_EQ(forced["reason"], "--algo");
}

TEST(Explain, says_why_each_of_the_others_is_not_taken) {
  const json answer = explained({"all_reduce", "-n", "6", "--bytes", "64K", "--algo", "^ring"});
  std::map<std::string, std::string> why;
  for (const json& c : answer["candidates"]) why[c["algorithm"]] = c["why"];
  EXPECT_EQ(why["all_reduce/hypercube"], "cannot be done: it needs a power of two, not 6 ranks");
  EXPECT_EQ(why["all_reduce/ring"], "excluded by --algo");
  EXPECT_EQ(why["all_reduce/one_shot"].find("slower by the model: predicted x"), 0U)
      << why["all_reduce/one_shot"];
}

TEST(Explain, says_which_protocols_are_possible_and_that_sockets_have_none) {
  const auto protocols = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"all_reduce", "-n", "2", "--bytes", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return explained(arguments)["protocols"].get<std::string>();
  };
  EXPECT_EQ(protocols({}), "LL, LL128, Simple (by the size of what is published)");
  EXPECT_EQ(protocols({"--proto", "all_reduce:LL128@-1K"}), "LL128 (--proto)");
  EXPECT_EQ(protocols({"--proto", "^LL"}), "LL128, Simple (--proto)");
  EXPECT_EQ(protocols({"--transport", "tcp"}), "frames of a socket, without protocols");
  EXPECT_EQ(protocols({"--transport", "tcp", "--proto", "LL"}),
            "LL as the length of pieces (--proto)");
}

TEST(Explain, says_what_is_wrong) {
  for (const auto& [arguments, words] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"explain", "no_such"}, "no_such"},
           {{"explain", "all_reduce", "--bytes", "many"}, "many"},
           {{"explain", "all_reduce", "--hosts", "3,3"}, "--hosts: these have 6 ranks, not 4"},
           {{"explain", "all_reduce", "--near", "3,3"}, "--near: these have 6 ranks, not 4"},
           {{"explain", "reduce", "--root", "9"}, "--root 9 is not one of 4 ranks"},
           {{"explain", "all_reduce", "--algo", "magic"}, "--algo: 'magic'"},
           {{"explain", "all_reduce", "--proto", "magic"}, "--proto: 'magic'"}}) {
    Tool tool(arguments);
    EXPECT_NE(tool.finish(), 0);
    EXPECT_NE(tool.err().find(words), std::string::npos) << tool.err();
  }
}

TEST(Combinations, list_every_algorithm_with_each_protocol_that_it_can_have) {
  Tool tool({"info", "--combinations", "--json"});
  EXPECT_EQ(tool.finish(), 0);
  const json list = json::parse(tool.out());
  const auto has = [&](const std::string& algorithm, const std::string& protocol) {
    return std::find(list.begin(), list.end(),
                     json{{"algorithm", algorithm}, {"protocol", protocol}}) != list.end();
  };
  for (const Algorithm* a : all_algorithms()) EXPECT_TRUE(has(id(*a), "Simple")) << id(*a);
  EXPECT_TRUE(has("all_reduce/ring", "LL"));
  EXPECT_TRUE(has("all_gather/bruck", "LL128"));
  EXPECT_FALSE(has("all_gather/bruck", "LL")) << "it sends several blocks at once";
  EXPECT_FALSE(has("all_to_all_v/direct", "LL")) << "its messages say how long they are";
}

TEST(Combinations, are_all_measured_and_can_be_chosen_by) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("anyccl-combinations-" + std::to_string(::getpid()) + ".json");
  Tool tool({"perf", "all_gather", "-g", "4", "-b", "4K", "-e", "4K", "-n", "20", "--inplace", "0",
             "--all-combinations", "--json", file.string()});
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  std::ifstream in(file);
  const json rows = json::parse(in);
  std::set<std::pair<std::string, std::string>> measured;
  for (const json& row : rows) {
    measured.emplace(row["algorithm"], row["protocol"]);
    EXPECT_EQ(row["wrong"], 0);
  }
  const std::set<std::pair<std::string, std::string>> possible = {
      {"all_gather/direct", "LL"},
      {"all_gather/direct", "LL128"},
      {"all_gather/direct", "Simple"},
      {"all_gather/ring", "LL"},
      {"all_gather/ring", "LL128"},
      {"all_gather/ring", "Simple"},
      {"all_gather/bruck", "LL128"},
      {"all_gather/bruck", "Simple"},
      {"all_gather/circulant", "LL128"},
      {"all_gather/circulant", "Simple"},
      {"all_gather/recursive_doubling", "LL128"},
      {"all_gather/recursive_doubling", "Simple"},
      {"all_gather/two_level", "LL"},
      {"all_gather/two_level", "LL128"},
      {"all_gather/two_level", "Simple"}};
  EXPECT_EQ(measured, possible);

  const json answer =
      explained({"all_gather", "-n", "4", "--bytes", "1K", "--table", file.string()});
  EXPECT_NE(answer["reason"].get<std::string>().find(file.string()), std::string::npos) << answer;
  for (const json& c : answer["candidates"]) EXPECT_TRUE(c["measured_us"].is_number()) << c;

  // And a real call goes by it.
  ::setenv("ANYCCL_TUNER_TABLE", file.c_str(), 1);
  const auto again = file.string() + ".again";
  Tool by_table({"perf", "all_gather", "-g", "4", "-b", "4K", "-e", "4K", "-n", "5", "--inplace",
                 "0", "--json", again});
  ::unsetenv("ANYCCL_TUNER_TABLE");
  EXPECT_EQ(by_table.finish(), 0) << by_table.err();
  std::ifstream in_again(again);
  EXPECT_EQ(json::parse(in_again)[0]["algorithm"], answer["chosen"]);
  std::filesystem::remove(file);
  std::filesystem::remove(again);
}

TEST(Combinations, need_ranks_that_they_start_themselves) {
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "1", 1);
  Tool tool({"perf", "all_reduce", "--all-combinations"});
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_NE(tool.err().find("starts its ranks itself"), std::string::npos) << tool.err();
}

}  // namespace
}  // namespace anyccl::cli
