// The way of the root server's answer to all ranks.

#include "platform/bootstrap/relay_tree.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "platform/bootstrap/hello.hpp"

namespace anyccl::bootstrap {
namespace {

/// How often each rank is told, following receivers_of() from the ranks that the server tells.
std::vector<int> times_told(const RelayTree& tree, std::uint32_t size) {
  std::vector<int> told(size);
  std::vector<std::uint32_t> now;
  for (std::uint32_t r = 0; r < std::min(tree.direct, size); ++r) now.push_back(r);
  for (std::size_t i = 0; i < now.size(); ++i) {
    ++told[now[i]];
    const RelayTree::Ranks next = tree.receivers_of(now[i], size);
    for (std::uint32_t r = next.first; r < next.end; ++r) now.push_back(r);
  }
  return told;
}

int depth_of(const RelayTree& tree, std::uint32_t rank) {
  const auto sender = tree.sender_of(rank);
  return sender ? 1 + depth_of(tree, *sender) : 1;
}

TEST(RelayTree, tells_every_rank_once) {
  for (const RelayTree& tree : {RelayTree{}, RelayTree{1, 1}, RelayTree{2, 3}, RelayTree{5, 2}})
    for (const std::uint32_t size : {1U, 2U, 5U, 64U, 65U, 500U, 1024U})
      EXPECT_EQ(times_told(tree, size), std::vector<int>(size, 1)) << size;
}

TEST(RelayTree, says_the_same_from_both_ends) {
  for (const RelayTree& tree : {RelayTree{}, RelayTree{1, 1}, RelayTree{2, 3}})
    for (std::uint32_t rank = 0; rank < 300; ++rank) {
      const auto sender = tree.sender_of(rank);
      EXPECT_EQ(!sender, rank < tree.direct);
      EXPECT_TRUE(!sender || tree.receivers_of(*sender, 300).contains(rank)) << rank;
    }
}

TEST(RelayTree, is_flat) {
  EXPECT_EQ(depth_of({}, 63), 1);
  EXPECT_EQ(depth_of({}, 1023), 2);
  EXPECT_EQ(depth_of({}, kMostRanks - 1), 4);
}

}  // namespace
}  // namespace anyccl::bootstrap
