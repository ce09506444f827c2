#pragma once

#include <memory>
#include <vector>

#include "platform/transport/setup.hpp"
#include "platform/transport/sockets/socket_transport.hpp"

namespace anyccl::unix_socket {

/// A transport over unix stream sockets, called "unix": for ranks of one host that can share no
/// memory, or may not use TCP.
/// Errors: those of make_socket_transport(); system_error.
Result<MadeTransport> make_unix_transport(std::vector<PeerSocket> peers,
                                          const TransportSetup& setup);

std::unique_ptr<const sockets::SocketKind> unix_socket();

}  // namespace anyccl::unix_socket
