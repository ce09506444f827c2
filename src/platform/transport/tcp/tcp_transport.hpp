#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/transport/setup.hpp"
#include "platform/transport/sockets/socket_transport.hpp"

namespace anyccl::tcp {

/// A transport over TCP connections, called "tcp/" and the congestion control in use.
/// Errors: those of make_socket_transport(); invalid_argument (a congestion control that cannot be
/// used).
Result<MadeTransport> make_tcp_transport(std::vector<PeerSocket> peers,
                                         const TransportSetup& setup);

/// Config::congestion; empty: cubic where the system allows it, else the system's default.
std::unique_ptr<const sockets::SocketKind> tcp_socket(std::string congestion = {});

}  // namespace anyccl::tcp
