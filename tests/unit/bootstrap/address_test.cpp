#include "platform/bootstrap/address.hpp"

#include <gtest/gtest.h>

#include "platform/bootstrap/interfaces.hpp"
#include "platform/bootstrap/names.hpp"
#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

TEST(Interfaces, are_chosen_by_prefix) {
  EXPECT_TRUE(interface_matches("eth,ib", "ib0"));
  EXPECT_TRUE(interface_matches("eth,ib", "eth1"));
  EXPECT_FALSE(interface_matches("eth,ib", "lo"));
}

TEST(Interfaces, are_excluded_with_a_caret) {
  EXPECT_FALSE(interface_matches("^docker,lo", "docker0"));
  EXPECT_FALSE(interface_matches("^docker,lo", "lo"));
  EXPECT_TRUE(interface_matches("^docker,lo", "eth0"));
}

TEST(Interfaces, are_matched_exactly_with_an_equals_sign) {
  EXPECT_TRUE(interface_matches("=eth1", "eth1"));
  EXPECT_FALSE(interface_matches("=eth1", "eth10"));
  EXPECT_FALSE(interface_matches("^=eth1", "eth1"));
  EXPECT_TRUE(interface_matches("^=eth1", "eth10"));
}

TEST(Interfaces, all_match_an_empty_choice) {
  for (const char* spec : {"", "^", "="}) EXPECT_TRUE(interface_matches(spec, "anything"));
}

TEST(Interfaces, that_do_not_exist_are_an_error_that_lists_those_that_do) {
  const std::string message = message_of(interface_addresses("nonesuch"));
  EXPECT_TRUE(contains(message, "ANYCCL_SOCKET_IFNAME=nonesuch")) << message;
  EXPECT_TRUE(contains(message, "lo")) << message;
}

TEST(Interfaces, list_loopback_last) {
  const Result<std::vector<Address>> addresses = interface_addresses("");
  ASSERT_OK(addresses.status());
  ASSERT_FALSE(addresses->empty());
  bool loopback = false;
  for (const Address& address : *addresses) {
    EXPECT_TRUE(is_loopback(address) || !loopback) << to_string(address);
    loopback = loopback || is_loopback(address);
    EXPECT_TRUE(*is_local(address)) << to_string(address);
  }
}

TEST(Resolve, understands_numeric_addresses) {
  EXPECT_EQ(to_string(resolve("192.0.2.7", 80, soon())->front()), "192.0.2.7:80");
  EXPECT_EQ(to_string(resolve("2001:db8::7", 80, soon())->front()), "[2001:db8::7]:80");
  EXPECT_TRUE(is_numeric("192.0.2.7"));
  EXPECT_TRUE(is_numeric("::1"));
  EXPECT_FALSE(is_numeric("localhost"));
}

TEST(Resolve, names_the_host_that_it_cannot_find) {
  const std::string message = message_of(resolve("no such host.invalid", 80, soon()));
  EXPECT_TRUE(contains(message, "no such host.invalid")) << message;
}

TEST(Address, of_another_host_is_not_local) {
  EXPECT_FALSE(*is_local(resolve("203.0.113.9", 1, soon())->front()));
  EXPECT_TRUE(*is_local(resolve("127.5.5.5", 1, soon())->front()));
}

TEST(ListenOnInterfaces, keeps_loopback_when_there_are_too_many_addresses) {
  const Result<std::vector<TcpListener>> listeners = listen_on_interfaces("", {}, 1);
  ASSERT_OK(listeners.status());
  ASSERT_EQ(listeners->size(), 1U);
  EXPECT_TRUE(is_loopback(listeners->front().address));
}

TEST(ListenTcp, says_that_a_port_is_in_use) {
  const Result<TcpListener> first = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
  ASSERT_OK(first.status());
  const Result<TcpListener> second = listen_tcp(first->address);
  EXPECT_EQ(second.status().code(), Code::invalid_usage);
  EXPECT_TRUE(contains(message_of(second), to_string(first->address))) << message_of(second);
}

}  // namespace
}  // namespace anyccl::bootstrap
