// Rules for protocols, and the configurations of calls.

#include "framework/tuning/plan_settings.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace anyccl::test {
namespace {

constexpr std::size_t kKibi = 1024;

Protocols of(std::initializer_list<Protocol> all) {
  Protocols made;
  for (const Protocol protocol : all) made.add(protocol);
  return made;
}

TEST(ProtocolRules, a_name_holds_for_all_collectives_and_for_messages) {
  const auto rules = ProtocolRules::parse("LL128");
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(rules->wanted(Collective::all_reduce, 8), Protocol::ll128);
  EXPECT_EQ(rules->wanted(Collective::barrier, 0), Protocol::ll128);
  EXPECT_EQ(rules->of_messages(), Protocol::ll128);
}

TEST(ProtocolRules, collectives_and_sizes_have_their_own) {
  const auto rules = ProtocolRules::parse("all_reduce:LL128@-8K,Simple@8K-;broadcast:^LL");
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  EXPECT_EQ(rules->wanted(Collective::all_reduce, 8 * kKibi - 1), Protocol::ll128);
  EXPECT_EQ(rules->wanted(Collective::all_reduce, 8 * kKibi), Protocol::simple);
  EXPECT_EQ(rules->wanted(Collective::broadcast, 8), std::nullopt);
  EXPECT_EQ(rules->excluded(Collective::broadcast, 8), of({Protocol::ll}));
  EXPECT_TRUE(rules->excluded(Collective::all_reduce, 8).none());
  EXPECT_EQ(rules->of_messages(), std::nullopt);
}

TEST(ProtocolRules, errors_say_what_is_wrong_and_what_is_allowed) {
  for (const auto& [text, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"fast", "ANYCCL_PROTO: 'fast' is not a protocol; there are LL, LL128, Simple"},
           {"ll", "'ll' is not a protocol"},
           {"all_reduce:fast", "'fast' is not a protocol of all_reduce"},
           {"allreduce:LL", "'allreduce' is not a collective; there are all_reduce"},
           {"LL@4K", "'LL@4K' has no sizes"},
           {"LL@1X-", "ANYCCL_PROTO: '1X' is not a size"}}) {
    const auto rules = ProtocolRules::parse(text);
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_EQ(rules.status().code(), Code::invalid_argument);
    EXPECT_NE(rules.status().message().find(part), std::string::npos) << rules.status().message();
  }
}

Result<ProtocolChoice> chosen(const char* environment, const char* call, const char* communicator) {
  const ProtocolRules all[] = {*ProtocolRules::parse(environment),
                               *ProtocolRules::parse(call, "config->proto"),
                               *ProtocolRules::parse(communicator, "config->proto")};
  const ProtocolRules* const rules[] = {&all[0], &all[1], &all[2]};
  return choose_protocols(Collective::all_reduce, 8, rules);
}

TEST(ProtocolChoice, is_that_of_the_first_rules_that_say_something) {
  EXPECT_EQ(chosen("", "", "")->allowed, Protocols::all());
  EXPECT_EQ(chosen("LL", "LL128", "Simple")->allowed, Protocols::only(Protocol::ll));
  EXPECT_EQ(chosen("LL", "LL128", "Simple")->rule, "ANYCCL_PROTO");
  EXPECT_EQ(chosen("LL@1K-", "LL128", "Simple")->allowed, Protocols::only(Protocol::ll128));
  EXPECT_EQ(chosen("broadcast:LL", "", "Simple")->allowed, Protocols::only(Protocol::simple));
}

TEST(ProtocolChoice, has_nothing_that_rules_exclude) {
  EXPECT_EQ(chosen("^LL", "", "")->allowed, of({Protocol::ll128, Protocol::simple}));
  EXPECT_EQ(chosen("^LL", "LL", "")->allowed, of({Protocol::ll128, Protocol::simple}))
      << "nobody can ask for what a rule before it excludes";
  EXPECT_EQ(chosen("^LL", "LL,Simple", "")->allowed, Protocols::only(Protocol::simple));
  EXPECT_EQ(chosen("^LL", "^Simple", "")->allowed, of({Protocol::ll128}));
  const Status none = chosen("^LL,^LL128", "^Simple", "").status();
  EXPECT_EQ(none.code(), Code::unsupported);
  EXPECT_EQ(none.message(),
            "ANYCCL_PROTO and config->proto leave no protocol for all_reduce of 8 bytes");
}

TEST(CallSettings, get_the_same_number_for_the_same_text_and_another_for_another) {
  CallSettingsTable table;
  EXPECT_EQ(*table.number_of({}), 0U);
  EXPECT_EQ(*table.number_of({.algorithms = "", .protocols = ""}), 0U) << "they say nothing";
  EXPECT_EQ(table.at(0), nullptr);
  const std::string ring = "ring", also_ring = "ring";
  const auto first = *table.number_of({.algorithms = ring.c_str()});
  EXPECT_EQ(first, 1U);
  EXPECT_EQ(*table.number_of({.algorithms = also_ring.c_str()}), first);
  EXPECT_NE(*table.number_of({.algorithms = "ring", .forced = false}), first);
  EXPECT_NE(*table.number_of({.algorithms = "ring", .chunk_bytes = 8192}), first);
  EXPECT_NE(*table.number_of({.protocols = "LL"}), first);
  EXPECT_EQ(*table.number_of({.algorithms = "ring", .tag = 7}), first) << "tags do not count";
  EXPECT_EQ(table.at(first)->tag, 7U);
}

TEST(CallSettings, that_are_wrong_are_an_error_or_do_not_count) {
  CallSettingsTable table;
  const Status wrong = table.number_of({.algorithms = "rnig"}).status();
  EXPECT_EQ(wrong.code(), Code::invalid_argument);
  EXPECT_EQ(wrong.message().rfind("config->algSelection: 'rnig' is not an algorithm", 0), 0U)
      << wrong.message();
  EXPECT_EQ(table.number_of({.protocols = "fast"}).status().code(), Code::invalid_argument);
  const auto number = table.number_of({.algorithms = "rnig", .protocols = "LL", .forced = false});
  ASSERT_TRUE(number.ok());
  EXPECT_EQ(*number, 1U) << "what was wrong has taken no number";
  EXPECT_EQ(table.at(*number)->protocols.wanted(Collective::all_reduce, 8), Protocol::ll);
  EXPECT_FALSE(table.at(*number)->algorithms.names(Collective::all_reduce));
}

TEST(CallSettings, have_an_end) {
  CallSettingsTable table;
  for (std::size_t i = 1; i <= CallSettingsTable::kMost; ++i)
    EXPECT_EQ(*table.number_of({.chunk_bytes = 4096 * i}), i);
  const Status full = table.number_of({.chunk_bytes = 4095}).status();
  EXPECT_EQ(full.code(), Code::invalid_usage);
  EXPECT_NE(full.message().find("63 different configurations"), std::string::npos);
  EXPECT_EQ(*table.number_of({.chunk_bytes = 4096}), 1U) << "those that it knows still work";
}

TEST(CallSettings, of_many_threads_get_one_number_each) {
  CallSettingsTable table;
  std::vector<std::vector<int>> numbers(4);
  std::vector<std::thread> threads;
  for (std::vector<int>& mine : numbers)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < CallSettingsTable::kMost; ++i) {
        const std::string size = "ring@" + std::to_string(i) + "K-";
        mine.push_back(*table.number_of({.algorithms = size.c_str()}));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<int>& mine : numbers) EXPECT_EQ(mine, numbers[0]);
}

}  // namespace
}  // namespace anyccl::test
