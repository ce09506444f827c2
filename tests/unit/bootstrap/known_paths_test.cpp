#include "platform/bootstrap/group/known_paths.hpp"

#include <gtest/gtest.h>

namespace anyccl::bootstrap {
namespace {

Hello on_host(std::uint64_t network_namespace) {
  Hello hello;
  hello.network_namespace = network_namespace;
  return hello;
}

Address at(std::uint8_t last, std::uint16_t port) {
  return {4, port, 0, {192, 0, 2, last}};
}

TEST(KnownPaths, come_first_at_whatever_port) {
  KnownPaths paths;
  paths.remember(on_host(1), at(2, 40));
  std::vector<Address> addresses = {at(1, 50), at(2, 51), at(3, 52)};
  paths.put_known_first(on_host(1), addresses);
  EXPECT_EQ(addresses, (std::vector<Address>{at(2, 51), at(1, 50), at(3, 52)}));
}

TEST(KnownPaths, are_of_one_host) {
  KnownPaths paths;
  paths.remember(on_host(1), at(2, 40));
  std::vector<Address> addresses = {at(1, 50), at(2, 51)};
  paths.put_known_first(on_host(7), addresses);
  EXPECT_EQ(addresses.front(), at(1, 50));
}

TEST(KnownPaths, that_worked_last_replace_earlier_ones) {
  KnownPaths paths;
  paths.remember(on_host(1), at(2, 40));
  paths.remember(on_host(1), at(3, 40));
  std::vector<Address> addresses = {at(1, 50), at(2, 51), at(3, 52)};
  paths.put_known_first(on_host(1), addresses);
  EXPECT_EQ(addresses.front(), at(3, 52));
}

}  // namespace
}  // namespace anyccl::bootstrap
