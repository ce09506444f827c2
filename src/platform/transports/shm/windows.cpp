#include "platform/transports/shm/windows.hpp"

#include "base/error.hpp"

namespace anyccl::shm {

std::optional<std::uint32_t> Windows::share_window(const Arena::Window& window) {
  if (const auto known = numbers_.find(window.id); known != numbers_.end()) return known->second;
  ControlMessage message;
  message.kind = ControlMessage::window;
  message.number = next_++;  // also if only some peers come to know it: never reused
  message.bytes = window.bytes;
  message.address = window.id;
  if (!tell_peers(message, window.fd)) return {};
  return numbers_.emplace(window.id, static_cast<std::uint32_t>(message.number)).first->second;
}

void Windows::close() {
  const Arena& arena = Arena::of_process();
  returned_ = arena.returned();
  for (auto window = numbers_.begin(); window != numbers_.end();) {
    if (arena.hold(window->first) != nullptr) {
      ++window;
      continue;
    }
    ControlMessage message;
    message.kind = ControlMessage::no_window;
    message.number = window->second;
    static_cast<void>(
        tell_peers(message, -1));  // who cannot be told keeps it until the communicator ends
    window = numbers_.erase(window);
  }
}

bool Windows::tell_peers(const ControlMessage& message, int fd) {
  bool all = true;
  for (Peer& peer : peers_) {
    const Status sent = send(*peer.channel, message, {peer.same_process ? -1 : fd, -1});
    if (!sent.ok() && peer.state == PeerState::present) all = false;
  }
  // Pairs with the acquire in read_notices(): who sees it finds the message in its socket.
  notices_.fetch_add(1, std::memory_order_release);
  return all;
}

Status take_notice(Peer& peer, const ControlMessage& message, const UniqueFd& fd) {
  if (message.kind == ControlMessage::no_window) {
    if (const auto closed = peer.windows.extract(message.number); !closed.empty())
      peer.closed_windows.push_back(std::move(closed.mapped()));
    return {};
  }
  Window window;
  window.bytes = message.bytes;
  if (peer.same_process) {
    window.same = Arena::of_process().hold(message.address);
    if (window.same == nullptr) return {};  // given back already: nobody will be sent there
    window.base = window.same->mapping.data();
  } else {
    ANYCCL_TRY(window.mapping,
               map_peer(fd.get(), message.bytes, Access::read, "a peer's registered memory"));
    window.base = window.mapping.data();
  }
  peer.windows.emplace(message.number, std::move(window));
  return {};
}

}  // namespace anyccl::shm
