#include "launch/rendezvous.hpp"

#include <gtest/gtest.h>

namespace anyccl::cli {
namespace {

TEST(FreePortPair, leaves_room_for_the_neighbour) {
  const Result<int> port = free_port_pair();
  ASSERT_TRUE(port.ok()) << port.status().message();
  EXPECT_GT(*port, 1023);
  EXPECT_LT(*port, 65535);
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
