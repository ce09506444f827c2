#pragma once

#include <memory>
#include <vector>

#include "platform/transport/setup.hpp"

namespace anyccl::tcp {

/// A transport over links that are TCP connections, called "tcp/" and the congestion control in use.
/// Errors: those of make_socket_transport().
Result<MadeTransport> make_tcp_transport(std::vector<fabric::PeerChannel> peers,
                                         const TransportSetup& setup);

/// Its congestion control is cubic where the system allows it, else the system's default.
/// `ack_timeout_s`: that of Config.
std::unique_ptr<const fabric::SocketKind> tcp_socket(int ack_timeout_s = 30);

}  // namespace anyccl::tcp
