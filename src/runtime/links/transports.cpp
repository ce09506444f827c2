#include "runtime/links/transports.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithm/plan/plan.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "platform/transports/chaos/chaos_transport.hpp"
#include "platform/transports/shm/arena.hpp"
#include "platform/transports/shm/shm_transport.hpp"
#include "platform/transports/tcp/tcp_transport.hpp"
#include "platform/transports/unix_socket/unix_transport.hpp"

namespace anyccl {
namespace {

bool if_threads(const link::PeerChannel&, bool threads) {
  return threads;
}
bool if_local(const link::PeerChannel& peer, bool) {
  return peer.local;
}
bool if_remote(const link::PeerChannel& peer, bool) {
  return !peer.local;
}

/// A new transport is a folder and a line here.
constexpr TransportEntry kTransports[] = {
    {"loopback", Medium::memory, "threads of one process", if_threads, shm::make_shm_transport},
    {"shm", Medium::memory, "ranks of one host that can share memory", if_local,
     shm::make_shm_transport},
    {"unix", Medium::sockets, "ranks of one host", if_local, unix_socket::make_unix_transport},
    {"tcp", Medium::network, "every rank", if_remote, tcp::make_tcp_transport},
};

TransportSetup setup_of(const Membership& membership, std::shared_ptr<link::Context> context,
                        const Config& config, Deadline deadline) {
  return {.me = membership.rank,
          .context = std::move(context),
          .ranks = static_cast<std::uint32_t>(membership.size),
          .banks = kBanks,
          .slots = slots_for(membership.size),
          .ring_bytes = membership.ring_bytes,
          .line_bytes = membership.line_bytes,
          .message_line_bytes = membership.message_line_bytes,
          .cores_are_shared = membership.ranks_per_core > 1,
          .config = config,
          .deadline = deadline};
}

}  // namespace

std::span<const TransportEntry> transports() {
  return kTransports;
}

std::vector<std::string_view> transport_names() {
  std::vector<std::string_view> names;
  for (const TransportEntry& entry : kTransports) names.push_back(entry.name);
  return names;
}

const TransportEntry* find_transport(std::string_view name) {
  const auto found = std::find_if(std::begin(kTransports), std::end(kTransports),
                                  [&](const TransportEntry& entry) { return entry.name == name; });
  return found == std::end(kTransports) ? nullptr : found;
}

Status check_transport_name(std::string_view name) {
  if (name.empty() || find_transport(name) != nullptr) return {};
  return error(Code::invalid_argument, "ANYCCL_TRANSPORT={} is not one of {}", name,
               fmt::join(transport_names(), ", "));
}

Result<std::vector<PeerLink>> make_links(std::vector<PeerSocket> sockets, Rank me,
                                         const Config& config) {
  const std::shared_ptr<const link::SocketKind> near = unix_socket::unix_socket(),
                                                far = network_socket(config);
  std::vector<PeerLink> links;
  for (PeerSocket& socket : sockets) {
    link::LinkSettings settings = link_settings(config, me, socket.rank);
    settings.encrypts = settings.encrypts && !socket.local;
    ANYCCL_TRY(auto link, link::Link::make(std::move(socket.fd), socket.local ? near : far,
                                           settings, std::move(socket.secure)));
    links.push_back({socket.rank, std::move(link), socket.local, socket.same_process});
  }
  return links;
}

link::LinkSettings link_settings(const Config& config, Rank me, Rank peer) {
  link::LinkSettings settings{config.checksums, config.chaos, config.tls, config.reconnect_s > 0};
  settings.chaos.seed = mix(mix(settings.chaos.seed, uindex(me)), uindex(peer));
  return settings;
}

std::shared_ptr<const link::SocketKind> network_socket(const Config& config) {
  return tcp::tcp_socket(config.ack_timeout_s);
}

Status add_transports(Membership& membership, link::ContextKey key,
                      const std::vector<PeerLink>& links, const Config& config, Deadline deadline) {
  const auto context = std::make_shared<link::Context>(membership.rank, key);
  std::vector<link::PeerChannel> peers;
  for (const PeerLink& peer : links) {
    if (config.tls && !peer.local && !peer.link->is_encrypted())
      return error(Code::invalid_usage,
                   "ANYCCL_TLS=1 came after the connection to {}, which the communicator shares",
                   membership.names[uindex(peer.rank)]);
    link::PeerChannel made{peer.rank, nullptr, peer.local, peer.same_process, peer.link};
    if (peer.link->connector() == nullptr) {
      ANYCCL_TRY(made.channel, peer.link->open(context, peer.rank));
    }
    peers.push_back(std::move(made));
  }
  const bool threads = std::all_of(peers.begin(), peers.end(),
                                   [](const link::PeerChannel& peer) { return peer.same_process; });
  const TransportSetup setup = setup_of(membership, context, config, deadline);
  for (const TransportEntry& entry : kTransports) {
    if (!config.transport.empty() && config.transport != entry.name) continue;
    std::vector<link::PeerChannel> mine;
    const auto rest = std::stable_partition(
        peers.begin(), peers.end(),
        [&](const link::PeerChannel& peer) { return !entry.reaches(peer, threads); });
    std::move(rest, peers.end(), std::back_inserter(mine));
    peers.erase(rest, peers.end());
    if (mine.empty()) continue;
    ANYCCL_TRY(MadeTransport made, entry.make(std::move(mine), setup));
    if (made.transport) membership.transports.push_back(std::move(made.transport));
    std::move(made.others.begin(), made.others.end(), std::back_inserter(peers));
  }
  add_chaos(membership.transports, config.chaos, membership.rank);
  if (peers.empty()) return {};
  const TransportEntry* const named = find_transport(config.transport);
  return error(Code::unsupported,
               "ANYCCL_TRANSPORT={} reaches {}, but {} cannot be reached from {} by it",
               config.transport, named == nullptr ? "nobody" : named->reach,
               membership.names[uindex(peers[0].rank)], membership.names[uindex(membership.rank)]);
}

Result<void*> allocate_shared(std::size_t bytes) {
  return shm::Arena::of_process().allocate(bytes);
}
Status free_shared(void* memory) {
  return shm::Arena::of_process().free(memory);
}
Status register_shared(void* memory, std::size_t bytes, int fd, std::size_t offset) {
  return shm::Arena::of_process().add(memory, bytes, fd, offset);
}
Status deregister_shared(void* memory) {
  return shm::Arena::of_process().remove(memory);
}

}  // namespace anyccl
