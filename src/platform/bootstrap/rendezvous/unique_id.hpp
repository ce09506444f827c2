#pragma once
// A unique id leads ranks to their root server: the user passes its 128 bytes to each of them, and
// they join with it. The process that makes it starts the server, or adds a group to one that runs
// already. Its bytes hold the addresses of the server and the secret, not encrypted.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/bootstrap/rendezvous/root_server.hpp"
#include "platform/bootstrap/socket/packed_addresses.hpp"
#include "platform/bootstrap/socket/secret.hpp"

namespace anyccl::bootstrap {

inline constexpr std::size_t kUniqueIdBytes = 128;

/// The means by which ranks find and trust each other, as the user passes it around: the address of
/// the root server and the secret that it asks for. Any process that has it can join.
struct UniqueId {
  static constexpr std::size_t kAddressBytes = 88;

  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t meeting = 0;  ///< Its number at that server.
  std::array<std::byte, Secret::kBytes> secret{};
  std::array<std::uint8_t, kAddressBytes> packed{};  ///< See addresses().
  std::array<std::byte, 8>
      check{};  ///< Over all of the above: finds ids that were cut or mixed up.

  /// With as many of `addresses` as there is room for: 12 of IPv4 or 4 of IPv6.
  static Result<UniqueId> make(const Secret& secret, std::span<const Address> addresses,
                               std::uint32_t meeting = 0);
  /// Errors: invalid_argument saying what is wrong with it.
  static Result<UniqueId> from_bytes(std::span<const char, kUniqueIdBytes> bytes);
  void to_bytes(std::span<char, kUniqueIdBytes> bytes) const;

  std::vector<Address> addresses() const;
  bool operator==(const UniqueId&) const = default;
};
static_assert(sizeof(UniqueId) == kUniqueIdBytes);

/// A unique id and the server behind it.
struct Rendezvous {
  UniqueId id;
  std::shared_ptr<RootServer> server;
};

/// Starts a root server on this host's interfaces (`interfaces` as in ANYCCL_SOCKET_IFNAME), at
/// free ports of `ports`, and makes the id that leads there. Errors: invalid_argument,
/// system_error.
Result<Rendezvous> make_rendezvous(std::string_view interfaces, PortRange ports = {},
                                   std::uint32_t meeting = 0);

/// The ids that a process has made: those whose groups are still to be formed share a root server,
/// so that they take one thread and one set of listeners. Threads may use it at once.
class UniqueIds {
 public:
  /// As make_rendezvous().
  Result<UniqueId> make(std::string_view interfaces, PortRange ports);
  /// Ends the meeting of `id`, and waits until it is over: its group is formed, or never will be,
  /// and ranks that wait for it are told so; late ones get a moment to hear it if it
  /// `waits_for_late`. Others: does nothing.
  void drop(const UniqueId& id, bool waits_for_late);
  /// Whether it was made here, but for one in 2^32 of other processes.
  bool was_made_here(const UniqueId& id);

 private:
  struct Open {
    Rendezvous rendezvous;
    std::string interfaces;
    PortRange ports;
  };
  Result<std::optional<UniqueId>> make_beside(const Open& other);

  std::mutex mutex_;
  std::vector<Open> open_;
  std::uint32_t first_meeting_ = 0, made_ = 0;  // meetings are numbered from a random first one
};

}  // namespace anyccl::bootstrap
