#pragma once
// The socket transport runs over the links to its peers, whatever kind of socket they have. The tcp
// and the unix transport are made of it. It has no thread: bytes move when it is called.

#include <memory>
#include <vector>

#include "platform/link/channel.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl::sockets {

/// A transport over the links to its peers. After an operation has failed, call abort() or leave()
/// before memory that it named goes away.
/// Errors: invalid_argument (a rank twice, `me` among the peers).
Result<std::unique_ptr<Transport>> make_socket_transport(std::shared_ptr<link::Context> context,
                                                         std::vector<link::PeerChannel> peers);

}  // namespace anyccl::sockets
