#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::bootstrap {

/// An internet address and port, as it is sent.
struct Address {
  std::uint16_t family = 0;  ///< 4 or 6; 0: none.
  std::uint16_t port = 0;
  std::uint32_t scope =
      0;  ///< Interface of a link-local IPv6 address; means something on this host only.
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const Address&) const = default;
};

/// "192.0.2.1:4000", "[::1]:4000".
std::string to_string(const Address& address);
inline constexpr std::array<std::uint8_t, 16> kLoopback6{0, 0, 0, 0, 0, 0, 0, 0,
                                                         0, 0, 0, 0, 0, 0, 0, 1};
bool is_loopback(const Address& address);
bool is_valid(const Address& address);
/// The same address with another port.
Address with_port(Address address, std::uint16_t port);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketAddress to_socket_address(const Address& address);
/// Family 0 when it is not an internet address.
Address to_address(const sockaddr& address);

/// Which interfaces a text like ANYCCL_SOCKET_IFNAME names: prefixes separated by commas; with ^ in
/// front all others; with = (or ^=) in front the names are complete. Empty: everything.
bool interface_matches(std::string_view spec, std::string_view name);

/// Addresses of this host's interfaces that are up and match `spec`, the likeliest way to reach
/// this host first: IPv4 before IPv6, interfaces of container and VM bridges late, loopback last.
/// Link-local IPv6 addresses are left out. Port 0.
/// Errors: invalid_argument when `spec` is not empty and nothing matches.
Result<std::vector<Address>> interface_addresses(std::string_view spec);

/// Whether some interface of this host (in any state) has it, or it is a loopback address.
Result<bool> is_local(const Address& address);

/// Whether `host` is an address and no name.
bool is_numeric(const std::string& host);

/// The addresses of `host` (a name or a numeric address), with `port`. How long a name takes is up
/// to the system's resolver. Errors: invalid_argument naming the host; system_error for a passing
/// problem.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port);

}  // namespace anyccl::bootstrap
