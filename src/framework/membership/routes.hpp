#pragma once
// A communicator finds here, by rank, the transport that reaches a peer.

#include <memory>
#include <vector>

#include "platform/transport/transport.hpp"

namespace anyccl {

/// How a rank reaches its peers; resolved once, when the communicator is created.
struct Routes {
  Routes(const std::vector<std::unique_ptr<Transport>>& all, int size)
      : to(static_cast<std::size_t>(size)), publications_to(to.size()), messages_to(to.size()) {
    for (const auto& transport : all) {
      transports.push_back(transport.get());
      publications.push_back(&transport->publications());
      for (const Rank peer : transport->peers()) {
        to[uindex(peer)] = transport.get();
        publications_to[uindex(peer)] = &transport->publications();
        messages_to[uindex(peer)] = &transport->messages();
      }
    }
  }

  std::vector<Transport*> transports;
  std::vector<Publications*> publications;  ///< As `transports`.
  // By rank; null for this one:
  std::vector<Transport*> to;
  std::vector<Publications*> publications_to;
  std::vector<Messages*> messages_to;
};

}  // namespace anyccl
