#pragma once
// A process remembers at which of its addresses each other host was reached last, so that later
// communicators begin there. The code that connects ranks (mesh) notes the address of each
// connection that it made over the network, and asks endpoints_of() before it dials.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/bootstrap/group/hello.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"

namespace anyccl::bootstrap {

/// The addresses at which other hosts were reached last. Any thread.
class KnownPaths {
 public:
  static KnownPaths& of_process();

  void remember(const Hello& peer, const Address& address);
  /// Puts that address first; nothing else changes.
  void put_known_first(const Hello& peer, std::vector<Address>& addresses) const;

 private:
  using Host = std::pair<std::array<std::byte, 16>, std::uint64_t>;
  static Host host_of(const Hello& peer) { return {peer.boot_id, peer.network_namespace}; }

  mutable std::mutex mutex_;
  std::map<Host, Address> reached_;  // without port and interface
};

/// Where a rank connects to for another one of its group, the likeliest first. `own`: its host's.
/// `force_tcp`: no unix sockets.
std::vector<Endpoint> endpoints_of(const Hello& mine, const Hello& peer, const OwnNetwork& own,
                                   bool force_tcp);

}  // namespace anyccl::bootstrap
