#include "platform/bootstrap/group/member_table.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

Hello hello_of(int rank, int size, std::string_view settings = "") {
  return make_member(rank, size, settings).hello;
}

TEST(MemberTable, is_complete_when_every_rank_is_there_and_lists_them_in_order) {
  MemberTable table;
  for (const int rank : {2, 0, 1}) {
    EXPECT_FALSE(table.complete());
    ASSERT_OK(table.add(hello_of(rank, 3)));
  }
  ASSERT_TRUE(table.complete());
  const std::vector<Hello> hellos = table.hellos();
  for (std::uint32_t r = 0; r < 3; ++r) EXPECT_EQ(hellos[r].rank, r);
}

TEST(MemberTable, names_missing_ranks) {
  MemberTable table;
  ASSERT_OK(table.add(hello_of(0, 4)));
  ASSERT_OK(table.add(hello_of(2, 4)));
  const Status s = table.incomplete_error(60);
  EXPECT_EQ(s.code(), Code::timeout);
  EXPECT_EQ(s.message(), "2 of 4 ranks joined within 60 s; missing: 1, 3");
}

TEST(MemberTable, refuses_a_rank_that_is_there_already_and_says_where_both_are) {
  MemberTable table;
  Hello first = hello_of(3, 4), second = hello_of(3, 4);
  first.host_name = {"hostA"};
  second.host_name = {"hostB"};
  first.pid = 12;
  second.pid = 34;
  ASSERT_OK(table.add(first));
  const Status s = table.add(second);
  EXPECT_EQ(s.code(), Code::invalid_usage);
  EXPECT_EQ(s.message(),
            "rank 3 joined twice: from host hostA, pid 12 and from host hostB, pid 34");
}

TEST(MemberTable, refuses_another_size) {
  MemberTable table;
  ASSERT_OK(table.add(hello_of(0, 4)));
  const Status s = table.add(hello_of(1, 5));
  EXPECT_EQ(s.code(), Code::invalid_usage);
  EXPECT_TRUE(contains(s.message(), "4 ranks") && contains(s.message(), "one of 5")) << s.message();
}

TEST(MemberTable, refuses_another_version) {
  MemberTable table;
  ASSERT_OK(table.add(hello_of(0, 2)));
  Hello other = hello_of(1, 2);
  other.library = 70809;
  const Status s = table.add(other);
  EXPECT_EQ(s.code(), Code::invalid_usage);
  EXPECT_TRUE(contains(s.message(), "7.8.9")) << s.message();
}

TEST(MemberTable, names_the_variable_that_differs_and_both_values) {
  MemberTable table;
  ASSERT_OK(table.add(hello_of(0, 2, "ANYCCL_PROTO=LL ANYCCL_ALGO=ring")));
  const Status s = table.add(hello_of(1, 2, "ANYCCL_PROTO=LL ANYCCL_ALGO=tree"));
  EXPECT_EQ(s.code(), Code::invalid_usage);
  EXPECT_TRUE(contains(s.message(), "ANYCCL_ALGO must be the same")) << s.message();
  EXPECT_TRUE(contains(s.message(), "ring at rank 0") && contains(s.message(), "tree at rank 1"))
      << s.message();
}

TEST(MemberTable, names_a_variable_that_only_one_rank_has) {
  for (const bool on_first : {true, false}) {
    MemberTable table;
    ASSERT_OK(table.add(hello_of(0, 2, on_first ? "ANYCCL_ALGO=ring" : "ANYCCL_ALGO=")));
    const Status s = table.add(hello_of(1, 2, on_first ? "" : "ANYCCL_ALGO=ring"));
    EXPECT_TRUE(contains(s.message(), "not set at rank")) << s.message();
  }
}

TEST(MemberTable, refuses_hellos_that_break_their_own_rules) {
  const Hello good = hello_of(1, 2);
  std::vector<Hello> bad(7, good);
  bad[0].magic[0] = 'x';
  bad[1].protocol += 1;
  bad[2].rank = 2;
  bad[3].size = 0;
  bad[4].size = 0xffffffff;
  bad[5].settings.fill('x');
  bad[6].addresses[0] = 5;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    MemberTable table;
    EXPECT_EQ(table.add(bad[i]).code(), Code::invalid_argument) << "case " << i;
  }
}

TEST(ListRanks, shortens_long_lists) {
  std::vector<std::size_t> many(20);
  std::iota(many.begin(), many.end(), std::size_t{0});
  EXPECT_EQ(list_ranks({1, 3}), "1, 3");
  EXPECT_TRUE(list_ranks(many).ends_with("14, 15 and 4 more")) << list_ranks(many);
}

TEST(Hello, refuses_settings_that_are_too_long) {
  const Member member = make_member(0, 1);
  const std::string settings(Hello::kSettings, 'x');
  const Result<Hello> hello = make_hello(Rank{0}, 1, this_host(), settings, member.listeners);
  EXPECT_EQ(hello.status().code(), Code::invalid_argument);
}

TEST(Hello, is_on_one_host_only_if_boot_namespace_and_host_id_are_equal) {
  const auto at = [](const HostIdentity& host) { return make_member(0, 1, "", host).hello; };
  const Hello here = at({"boot", 1, "a"});
  EXPECT_TRUE(same_host(here, at({"boot", 1, "a"})));
  EXPECT_FALSE(same_host(here, at({"other boot", 1, "a"})));
  EXPECT_FALSE(same_host(here, at({"boot", 2, "a"})));
  EXPECT_FALSE(same_host(here, at({"boot", 1, "b"})));
  EXPECT_TRUE(same_network(here, at({"boot", 1, "b"})));
}

}  // namespace
}  // namespace anyccl::bootstrap
