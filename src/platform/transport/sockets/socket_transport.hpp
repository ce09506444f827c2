#pragma once

#include <memory>
#include <vector>

#include "platform/fabric/channel.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl::sockets {

/// A transport over the links to its peers. It has no thread: bytes move when it is called. After an
/// operation has failed, call abort() or leave() before memory that it named goes away.
/// Errors: invalid_argument (a rank twice, `me` among the peers).
Result<std::unique_ptr<Transport>> make_socket_transport(std::shared_ptr<fabric::Context> context,
                                                         std::vector<fabric::PeerChannel> peers);

}  // namespace anyccl::sockets
