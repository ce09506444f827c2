// The way of the root server's answer to the leaders of hosts.

#include "platform/bootstrap/rendezvous/relay_tree.hpp"

#include <gtest/gtest.h>

#include <map>

#include "platform/bootstrap/group/hello.hpp"

namespace anyccl::bootstrap {
namespace {

int depth_of(const RelayTree& tree, std::uint32_t number) {
  const auto teller = tree.teller_of(number);
  return teller ? 1 + depth_of(tree, *teller) : 1;
}

TEST(RelayTree, gives_every_leader_one_that_came_before_it) {
  for (const RelayTree& tree : {RelayTree{}, RelayTree{1, 1}, RelayTree{2, 3}, RelayTree{5, 2}})
    for (std::uint32_t number = 0; number < 300; ++number) {
      const auto teller = tree.teller_of(number);
      EXPECT_EQ(!teller, number < tree.direct);
      EXPECT_TRUE(!teller || *teller < number) << number;
    }
}

TEST(RelayTree, gives_no_leader_more_than_it_is_to_tell) {
  for (const RelayTree& tree : {RelayTree{}, RelayTree{1, 1}, RelayTree{2, 3}}) {
    std::map<std::uint32_t, std::uint32_t> told_by;
    for (std::uint32_t number = tree.direct; number < 2000; ++number)
      ++told_by[*tree.teller_of(number)];
    for (const auto& [teller, count] : told_by) EXPECT_LE(count, tree.each) << teller;
  }
}

TEST(RelayTree, needs_the_tellers_of_the_largest_number_of_leaders) {
  for (const RelayTree& tree : {RelayTree{}, RelayTree{1, 1}, RelayTree{2, 3}})
    for (const std::uint32_t size : {1U, 2U, 5U, 64U, 65U, 80U, 81U, 1024U}) {
      const auto last = tree.teller_of(size - 1);
      EXPECT_TRUE(!last || tree.may_need(*last, size)) << size;
      EXPECT_FALSE(tree.may_need(last ? *last + 1 : 0, size)) << size;
    }
}

TEST(RelayTree, is_flat) {
  EXPECT_EQ(depth_of({}, 63), 1);
  EXPECT_EQ(depth_of({}, 1023), 2);
  EXPECT_EQ(depth_of({}, kLargestGroup - 1), 4);
}

TEST(RelayTree, is_for_groups_whose_ranks_the_server_does_not_tell_itself) {
  EXPECT_FALSE(RelayTree().is_large(64));
  EXPECT_TRUE(RelayTree().is_large(65));
}

}  // namespace
}  // namespace anyccl::bootstrap
