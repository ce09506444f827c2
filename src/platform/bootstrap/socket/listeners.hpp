#pragma once
// Listeners accept the connections of a rank's peers: one unix socket, and a TCP socket at each of
// some addresses of this host. A rank opens them before it joins, in the thread that creates its
// communicator, and its hello tells its peers where they are. The root server of a unique id
// listens with listen_on_interfaces(), too.

#include <string>
#include <string_view>
#include <vector>

#include "platform/bootstrap/socket/socket.hpp"

namespace anyccl::bootstrap {

/// At how many addresses one rank listens.
inline constexpr std::size_t kMostListeners = 8;

/// Listens at a free port of `ports` at each of at most `most` addresses of this host, the
/// likeliest first. Without an explicit choice of interfaces the last one is loopback, for the
/// ranks of this host. Raises the process's limit of descriptors first. Errors: invalid_argument;
/// system_error, also when no port is free.
Result<std::vector<TcpListener>> listen_on_interfaces(std::string_view interfaces, PortRange ports,
                                                      std::size_t most = kMostListeners);

/// Where one rank's peers connect to. Made before the rank tells the others about itself.
struct Listeners {
  UniqueFd unix_socket;
  std::string unix_name;  ///< 128 random bits: nobody can take it first.
  std::vector<TcpListener> tcp;

  /// `interfaces` as in ANYCCL_SOCKET_IFNAME. Errors: as listen_on_interfaces().
  static Result<Listeners> open(std::string_view interfaces, PortRange ports = {});
};

}  // namespace anyccl::bootstrap
