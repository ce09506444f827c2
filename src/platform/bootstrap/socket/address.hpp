#pragma once
// An address is an internet address with a port, in one form for IPv4 and IPv6. The functions here
// convert it to and from the system's socket addresses, and to text for messages. Other headers
// build on it: packed_addresses.hpp says how addresses travel.

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

namespace anyccl::bootstrap {

/// An internet address and port.
struct Address {
  std::uint16_t family = 0;  ///< 4 or 6; 0: none.
  std::uint16_t port = 0;
  std::uint32_t scope =
      0;  ///< Interface of a link-local IPv6 address; means something on this host only.
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const Address&) const = default;
};

/// "192.0.2.1:4000", "[::1]:4000", "[fe80::1%eth0]:4000".
std::string to_string(const Address& address);
inline constexpr std::array<std::uint8_t, 16> kLoopback6{0, 0, 0, 0, 0, 0, 0, 0,
                                                         0, 0, 0, 0, 0, 0, 0, 1};
bool is_loopback(const Address& address);
/// An IPv6 address that means something on one wire only: who connects says by which interface.
bool is_link_local(const Address& address);
bool is_valid(const Address& address);
/// `address` with another port.
Address with_port(Address address, std::uint16_t port);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketAddress to_socket_address(const Address& address);
/// Family 0 when it is not an internet address.
Address to_address(const sockaddr& address);

}  // namespace anyccl::bootstrap
