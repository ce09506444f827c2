#pragma once
// The unix transport is the socket transport over links that are unix stream sockets, for ranks of
// one host that can share no memory, or may not use TCP. unix_socket() says how links set up such
// sockets; links to local peers use it also where the peers share memory.

#include <memory>
#include <vector>

#include "platform/transports/setup.hpp"

namespace anyccl::unix_socket {

/// A transport over links that are unix stream sockets, called "unix".
/// Errors: those of make_socket_transport().
Result<MadeTransport> make_unix_transport(std::vector<link::PeerChannel> peers,
                                          const TransportSetup& setup);

std::unique_ptr<const link::SocketKind> unix_socket();

}  // namespace anyccl::unix_socket
