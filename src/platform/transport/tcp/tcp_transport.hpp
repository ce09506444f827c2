#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/transport/setup.hpp"

namespace anyccl::tcp {

/// A transport over links that are TCP connections, called "tcp/" and the congestion control in use.
/// Errors: those of make_socket_transport().
Result<MadeTransport> make_tcp_transport(std::vector<fabric::PeerChannel> peers,
                                         const TransportSetup& setup);

/// Config::congestion; empty: cubic where the system allows it, else the system's default. Setting
/// up a socket fails with invalid_argument where it cannot be used. `ack_timeout_s`: that of Config.
std::unique_ptr<const fabric::SocketKind> tcp_socket(std::string congestion = {},
                                                     int ack_timeout_s = 30);

}  // namespace anyccl::tcp
