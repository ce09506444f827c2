#pragma once
// The interfaces of this host decide at which addresses a rank listens, and which addresses of its
// peers it can reach. They come from the system, or from a list that this process made at most
// 100 ms before. Any thread may look for them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/bootstrap/socket/socket.hpp"

namespace anyccl::bootstrap {

/// Which interfaces a text like ANYCCL_SOCKET_IFNAME names: prefixes separated by commas; with ^ in
/// front all others; with = (or ^=) in front the names are complete. Empty: everything.
bool interface_matches(std::string_view spec, std::string_view name);

struct InterfaceAddress {
  std::string interface;
  Address address;
};
/// Addresses of this host's interfaces that are up and match `spec`, each with the name of its
/// interface, the likeliest way to reach this host first: IPv4, IPv6, link-local IPv6; then those
/// of interfaces without a carrier, of bridges of containers and VMs, and loopback. Port 0.
/// Errors: invalid_argument when `spec` is not empty and nothing matches.
Result<std::vector<InterfaceAddress>> addresses_by_interface(std::string_view spec);
Result<std::vector<Address>> interface_addresses(std::string_view spec);

/// Leaves `most` of what interface_addresses() found: one of each family as long as there is room,
/// and loopback.
void keep_likeliest(std::vector<Address>& addresses, std::size_t most);

/// Whether some interface of this host (in any state) has it, or it is a loopback address.
Result<bool> is_local(const Address& address);

/// What decides to which addresses this host can connect at all.
struct OwnNetwork {
  bool has_v4 = false, has_v6 = false;  ///< Addresses besides loopback and link-local ones.
  std::vector<std::uint32_t> scopes;    ///< The interfaces with link-local IPv6 addresses.

  /// Leaves out bridges of containers and VMs, and interfaces that are down or have no carrier.
  static Result<OwnNetwork> find();
  /// Where to connect to for `addresses` of a process, in this order. Link-local ones of another
  /// host, whose interface there means nothing here, are tried by each interface of this one.
  std::vector<Endpoint> endpoints_to(std::span<const Address> addresses) const;
  /// "no common address family: ..." if `endpoints` but for loopback are of one family, of which
  /// this host has no address. Else empty, also if one is a unix socket or link-local.
  std::string missing_family(std::span<const Endpoint> endpoints) const;
};

}  // namespace anyccl::bootstrap
