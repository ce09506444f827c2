#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "platform/bootstrap/socket.hpp"

namespace anyccl::bootstrap {

/// Listens at any free port of at most `most` addresses of this host, the likeliest first. Without
/// an explicit choice of interfaces the last one is loopback, for the ranks of this host.
Result<std::vector<TcpListener>> listen_on_interfaces(std::string_view interfaces,
                                                      std::size_t most);

/// Where one rank's peers connect to. Made before the rank tells the others about itself.
struct Listeners {
  UniqueFd unix_socket;
  std::string unix_name;  ///< 128 random bits: nobody can take it first.
  std::vector<TcpListener> tcp;

  /// `interfaces` as in ANYCCL_SOCKET_IFNAME. Errors: invalid_argument, system_error.
  static Result<Listeners> open(std::string_view interfaces);
};

}  // namespace anyccl::bootstrap
