#pragma once
// The TCP transport is the socket transport over links that are TCP connections, for peers that the
// network connects. tcp_socket() says how links set up such connections, and when the host of a
// peer counts as silent.

#include <memory>
#include <vector>

#include "platform/transports/setup.hpp"

namespace anyccl::tcp {

/// A transport over links that are TCP connections, called "tcp/" and the congestion control in
/// use.
/// Errors: those of make_socket_transport().
Result<MadeTransport> make_tcp_transport(std::vector<link::PeerChannel> peers,
                                         const TransportSetup& setup);

/// Its congestion control is cubic where the system allows it, else the system's default.
/// `ack_timeout_s`: that of Config.
std::unique_ptr<const link::SocketKind> tcp_socket(int ack_timeout_s = 30);

}  // namespace anyccl::tcp
