#include <gtest/gtest.h>

#include "platform/bootstrap/socket/interfaces.hpp"
#include "platform/bootstrap/socket/listeners.hpp"
#include "platform/bootstrap/socket/names.hpp"
#include "platform/bootstrap/socket/packed_addresses.hpp"
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

TEST(Resolve, names_the_host_that_the_name_service_does_not_find_in_time) {
  const std::string message =
      message_of(resolve("slow.invalid", 80, Deadline::in(std::chrono::seconds(0))));
  EXPECT_TRUE(contains(message, "cannot find the address of slow.invalid")) << message;
}

Address v4(std::uint8_t last) {
  return {4, 40, 0, {192, 0, 2, last}};
}
Address v6(std::uint8_t last) {
  return {6, 60, 0, {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}
Address link_local(std::uint8_t last) {
  return {6, 60, 0, {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}
const Address kLoopback{4, 40, 0, {127, 0, 0, 1}};

TEST(KeepLikeliest, leaves_each_family_and_loopback_an_address) {
  std::vector<Address> addresses = {v4(1), v4(2), v4(3), v6(1), v6(2), kLoopback};
  keep_likeliest(addresses, 4);
  EXPECT_EQ(addresses, (std::vector<Address>{v4(1), v4(2), v6(1), kLoopback}));
}

TEST(KeepLikeliest, drops_the_later_family_where_there_is_no_room) {
  std::vector<Address> addresses = {v4(1), v6(1), kLoopback};
  keep_likeliest(addresses, 2);
  EXPECT_EQ(addresses, (std::vector<Address>{v4(1), kLoopback}));
}

TEST(PackedAddresses, survive) {
  const std::vector<Address> addresses = {v4(7), v6(8), {6, 65535, 0, kLoopback6}};
  std::array<std::uint8_t, 45> bytes{};
  pack(addresses, bytes);
  const Result<std::vector<Address>> read = unpack(bytes);
  ASSERT_OK(read.status());
  EXPECT_EQ(*read, addresses);
}

TEST(PackedAddresses, keep_the_first_and_the_last) {
  std::array<std::uint8_t, 30> bytes{};
  pack(std::vector<Address>{v4(1), v6(2), v4(3), v4(4), v4(5), kLoopback}, bytes);
  EXPECT_EQ(*unpack(bytes), (std::vector<Address>{v4(1), v4(3), v4(4), kLoopback}));
}

TEST(PackedAddresses, that_are_cut_or_of_another_kind_are_refused) {
  std::array<std::uint8_t, 19> bytes{};
  pack(std::vector<Address>{v6(1)}, bytes);
  EXPECT_FALSE(unpack(std::span(bytes).first(18)).ok());
  bytes[0] = 5;
  EXPECT_FALSE(unpack(bytes).ok());
}

TEST(PackedAddresses, without_a_port_are_refused) {
  std::array<std::uint8_t, 7> bytes{};
  pack(std::vector<Address>{with_port(v4(1), 0)}, bytes);
  EXPECT_FALSE(unpack(bytes).ok());
}

TEST(OwnNetwork, tries_link_local_addresses_by_each_interface) {
  const OwnNetwork own{true, true, {2, 5}};
  const std::vector<Endpoint> endpoints = own.endpoints_to(std::vector{v4(1), link_local(9)});
  ASSERT_EQ(endpoints.size(), 3U);
  EXPECT_EQ(endpoints[0].address, v4(1));
  EXPECT_EQ(endpoints[1].address.scope, 2U);
  EXPECT_EQ(endpoints[2].address.scope, 5U);
}

std::string missing_family(bool has_v4, bool has_v6, const std::vector<Address>& addresses) {
  const OwnNetwork own{has_v4, has_v6, {}};
  return own.missing_family(own.endpoints_to(addresses));
}

TEST(OwnNetwork, tells_that_there_is_no_common_family) {
  EXPECT_TRUE(contains(missing_family(true, false, {v6(1)}), "no common address family"));
  EXPECT_TRUE(contains(missing_family(false, true, {v4(1)}), "it has IPv4 addresses"));
  EXPECT_EQ(missing_family(true, false, {v6(1), v4(1)}), "");
  EXPECT_EQ(missing_family(false, false, {kLoopback}), "");
  EXPECT_TRUE(contains(missing_family(true, false, {v6(1), kLoopback}), "it has IPv6 addresses"));
}

TEST(ListenTcp, takes_a_free_port_of_a_range) {
  const std::uint16_t port = listen_tcp({4, 0, 0, {127, 0, 0, 1}})->address.port;
  const Result<TcpListener> listener = listen_tcp({4, 0, 0, {127, 0, 0, 1}}, {port, port});
  ASSERT_OK(listener.status());
  EXPECT_EQ(listener->address.port, port);
}

TEST(ListenTcp, names_a_range_that_is_full) {
  const Result<TcpListener> taken = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
  ASSERT_OK(taken.status());
  const std::uint16_t port = taken->address.port;
  const Result<TcpListener> none = listen_tcp({4, 0, 0, {127, 0, 0, 1}}, {port, port});
  EXPECT_EQ(none.status().code(), Code::system_error);
  const std::string range = std::to_string(port) + "-" + std::to_string(port);
  EXPECT_TRUE(contains(message_of(none), "ANYCCL_PORT_RANGE=" + range)) << message_of(none);
}

TEST(ListenTcp, tells_an_address_of_another_host_from_a_shortage) {
  EXPECT_EQ(listen_tcp({4, 0, 0, {203, 0, 113, 9}}).status().code(), Code::unsupported);
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
