#include "launch/rendezvous.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace anyccl::cli {
namespace {

TEST(FreePortPair, leaves_room_for_the_neighbour) {
  const Result<PortPair> ports = free_port_pair();
  ASSERT_TRUE(ports.ok()) << ports.status().message();
  EXPECT_GT(ports->first, 1023);
  EXPECT_LT(ports->first, 65535);
}

TEST(FreePortPair, is_nobody_elses_while_it_is_kept) {
  std::set<int> taken;
  std::vector<PortPair> kept;
  for (int i = 0; i < 250; ++i) {  // of some ten thousand: a few would come twice
    Result<PortPair> ports = free_port_pair();
    ASSERT_TRUE(ports.ok()) << ports.status().message();
    EXPECT_TRUE(taken.insert(ports->first).second);
    EXPECT_TRUE(taken.insert(ports->first + 1).second);
    kept.push_back(*std::move(ports));
  }
}

TEST(RandomSecret, is_32_hex_digits) {
  const Result<std::string> secret = random_secret();
  ASSERT_TRUE(secret.ok()) << secret.status().message();
  EXPECT_EQ(secret->size(), 32U);
  EXPECT_EQ(secret->find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(RandomSecret, differs_every_time) {
  EXPECT_NE(*random_secret(), *random_secret());
}

}  // namespace
}  // namespace anyccl::cli
