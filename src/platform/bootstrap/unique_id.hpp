#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/bootstrap/packed_addresses.hpp"
#include "platform/bootstrap/root_server.hpp"
#include "platform/bootstrap/secret.hpp"

namespace anyccl::bootstrap {

inline constexpr std::size_t kUniqueIdBytes = 128;

/// The means by which ranks find and trust each other, as the user passes it around: the address of
/// the root server and the secret that it asks for. Any process that has it can join.
struct UniqueId {
  static constexpr std::size_t kAddressBytes = 88;

  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t unused = 0;
  std::array<std::byte, Secret::kBytes> secret{};
  std::array<std::uint8_t, kAddressBytes> packed{};  ///< See addresses().
  std::array<std::byte, 8>
      check{};  ///< Over all of the above: finds ids that were cut or mixed up.

  /// With as many of `addresses` as there is room for: 12 of IPv4 or 4 of IPv6.
  static Result<UniqueId> make(const Secret& secret, std::span<const Address> addresses);
  /// Errors: invalid_argument saying what is wrong with it.
  static Result<UniqueId> from_bytes(std::span<const char, kUniqueIdBytes> bytes);
  void to_bytes(std::span<char, kUniqueIdBytes> bytes) const;

  std::vector<Address> addresses() const;
};
static_assert(sizeof(UniqueId) == kUniqueIdBytes);

/// A unique id and the server behind it, which whoever made the id keeps until the group is formed.
struct Rendezvous {
  UniqueId id;
  std::unique_ptr<RootServer> server;
};

/// Starts a root server on this host's interfaces (`interfaces` as in ANYCCL_SOCKET_IFNAME), at
/// free ports of `ports`, and makes the id that leads to it. Errors: invalid_argument, system_error.
Result<Rendezvous> make_rendezvous(std::string_view interfaces, PortRange ports = {});

}  // namespace anyccl::bootstrap
