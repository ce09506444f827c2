#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "algorithm/catalog/algorithm.hpp"
#include "base/config.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// `anyccl info --json` with a variable set.
nlohmann::json info_with(const char* name, const char* value) {
  ::setenv(name, value, 1);
  Tool tool({"info", "--json"});
  ::unsetenv(name);
  EXPECT_EQ(tool.finish(), 0);
  return nlohmann::json::parse(tool.out());
}

nlohmann::json value_of(const nlohmann::json& info, std::string_view name) {
  for (const auto& variable : info["environment"])
    if (variable["name"] == name) return variable["value"];
  return "no such variable";
}

TEST(Info, lists_the_interfaces_that_are_used) {
  const nlohmann::json all = info_with("ANYCCL_TIMEOUT", "5")["interfaces"];
  const nlohmann::json loopback = info_with("ANYCCL_SOCKET_IFNAME", "=lo")["interfaces"];
  ASSERT_FALSE(loopback.empty());
  for (const auto& one : loopback) {
    EXPECT_EQ(one["interface"], "lo");
    EXPECT_EQ(one["leads_elsewhere"], false);
    EXPECT_NE(std::find(all.begin(), all.end(), one), all.end()) << all;
  }
  Tool tool({"info"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), loopback[0]["address"].get<std::string>())) << tool.out();
  EXPECT_TRUE(contains(tool.out(), "this host only")) << tool.out();
}

TEST(Info, says_what_protocols_are) {
  Tool tool({"info"});
  EXPECT_EQ(tool.finish(), 0);
  for (const char* words : {"\n  LL  ", "\n  LL128  ", "\n  Simple  ", "of shared memory only"})
    EXPECT_TRUE(contains(tool.out(), words)) << words << tool.out();
}

TEST(Info, says_that_nothing_is_chosen_by_rules_that_are_wrong) {
  EXPECT_TRUE(contains(info_with("ANYCCL_PROTO", "fast")["chosen_by"].dump(),
                       "nothing: ANYCCL_PROTO: 'fast'"));
}

TEST(Info, lists_every_environment_variable) {
  Tool tool({"info"});
  EXPECT_EQ(tool.finish(), 0);
  for (const Variable& variable : variables()) {
    EXPECT_TRUE(contains(tool.out(), variable.name)) << variable.name;
    EXPECT_TRUE(contains(tool.out(), variable.meaning)) << variable.name;
  }
}

TEST(Info, lists_every_algorithm) {
  const nlohmann::json info = info_with("ANYCCL_TIMEOUT", "5");
  for (const Algorithm* algorithm : all_algorithms()) {
    const auto& names = info["algorithms"][std::string(name(algorithm->collective))];
    EXPECT_NE(std::find(names.begin(), names.end(), algorithm->name), names.end())
        << id(*algorithm);
  }
}

TEST(Info, shows_the_values_that_are_set) {
  EXPECT_EQ(value_of(info_with("ANYCCL_TIMEOUT", "7"), "ANYCCL_TIMEOUT"), "7");
  EXPECT_TRUE(value_of(info_with("ANYCCL_TIMEOUT", "7"), "ANYCCL_TCP_ACK_TIMEOUT").is_null());
}

TEST(Info, does_not_show_the_secret) {
  const char* const secret = "0123456789abcdef0123456789abcdef";
  EXPECT_FALSE(contains(info_with("ANYCCL_SECRET", secret).dump(), secret));
}

TEST(Info, tells_version_host_and_transports) {
  const nlohmann::json info = info_with("ANYCCL_TIMEOUT", "5");
  EXPECT_EQ(info["version"], ANYCCL_VERSION_TEXT);
  EXPECT_GE(info["host"]["cores"], 1);
  EXPECT_EQ(info["transports"], nlohmann::json({"loopback", "shm", "unix", "tcp"}));
}

}  // namespace
}  // namespace anyccl::cli
