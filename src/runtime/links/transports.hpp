#pragma once
// The table of transports is here, the one place that knows the concrete ones: to add a transport,
// add a line. Links over sockets are made here, too.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/peer_socket.hpp"
#include "framework/membership/membership.hpp"
#include "platform/transports/setup.hpp"

namespace anyccl {

enum class Medium : std::uint8_t { memory, sockets, network };

struct TransportEntry {
  std::string_view name;   ///< What ANYCCL_TRANSPORT may say.
  Medium medium;           ///< If it is `network`, ranks of one host are connected by TCP, too.
  std::string_view reach;  ///< "It reaches ...", for messages.
  /// `threads`: all peers are threads of this process.
  bool (*reaches)(const link::PeerChannel& peer, bool threads);
  Result<MadeTransport> (*make)(std::vector<link::PeerChannel> peers, const TransportSetup& setup);
};
/// All there are, in the order of preference.
std::span<const TransportEntry> transports();
std::vector<std::string_view> transport_names();
/// Null if there is none of this name.
const TransportEntry* find_transport(std::string_view name);
/// Errors: invalid_argument if there is no such transport; empty is right.
Status check_transport_name(std::string_view name);

/// How a communicator reaches a peer.
struct PeerLink {
  Rank rank{};
  std::shared_ptr<link::Link> link;
  bool local = false;         ///< A unix socket: the peer is on this host.
  bool same_process = false;  ///< The peer is a thread of this process.
};
/// Makes links of fresh connections of rank `me`. Errors: those of Link::make().
Result<std::vector<PeerLink>> make_links(std::vector<PeerSocket> sockets, Rank me,
                                         const Config& config);
/// The settings of the link from `me` to `peer` over the network.
link::LinkSettings link_settings(const Config& config, Rank me, Rank peer);
/// The kind of all sockets over the network.
std::shared_ptr<const link::SocketKind> network_socket(const Config& config);

/// Opens a context of this key on the links, and gives `membership` the transports that reach these
/// peers: the one that `config` names, or for each peer the first one of the table that can.
/// Errors: unsupported (the one named does not reach them all), invalid_usage (a link is not
/// encrypted, and should be), and those of the transports.
Status add_transports(Membership& membership, link::ContextKey key,
                      const std::vector<PeerLink>& links, const Config& config, Deadline deadline);

/// Memory that peers on this host read where it lies; see anycclMemAlloc and anycclMemRegister.
Result<void*> allocate_shared(std::size_t bytes);
Status free_shared(void* memory);
Status register_shared(void* memory, std::size_t bytes, int fd, std::size_t offset);
Status deregister_shared(void* memory);

}  // namespace anyccl
