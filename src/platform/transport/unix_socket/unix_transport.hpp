#pragma once

#include <memory>
#include <vector>

#include "platform/transport/setup.hpp"

namespace anyccl::unix_socket {

/// A transport over links that are unix stream sockets, called "unix": for ranks of one host that can
/// share no memory, or may not use TCP.
/// Errors: those of make_socket_transport().
Result<MadeTransport> make_unix_transport(std::vector<fabric::PeerChannel> peers,
                                          const TransportSetup& setup);

std::unique_ptr<const fabric::SocketKind> unix_socket();

}  // namespace anyccl::unix_socket
