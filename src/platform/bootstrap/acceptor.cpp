#include "platform/bootstrap/acceptor.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::chrono::seconds kHandshakeTime{20};
constexpr std::size_t kMostPending = 1024;
constexpr int kMostAtOnce = 256;  // a flood must not keep the others waiting

void log_dropped(int fd, std::string_view why) {
  if (log_enabled(LogSubsystem::net))
    log(LogSubsystem::net, "dropped a connection from {}: {}", describe_peer(fd), why);
}

}  // namespace

void Acceptor::append_wanted(std::vector<pollfd>& entries) const {
  for (const Listener& listener : listeners_) entries.push_back({listener.fd, POLLIN, 0});
  for (const PendingPeer& s : pending_)
    entries.push_back({s.socket.get(), s.handshake.events(), 0});
}

int Acceptor::poll_ms(int most) const {
  return pending_.empty() ? most : pending_.front().deadline.poll_ms(most);
}

Status Acceptor::progress(std::span<const pollfd> entries) {
  advance_pending(entries.subspan(listeners_.size()));
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (entries[i].revents != 0) ANYCCL_CHECK(accept_waiting(listeners_[i]));
  return {};
}

void Acceptor::advance_pending(std::span<const pollfd> entries) {
  std::deque<PendingPeer> still;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    PendingPeer& s = pending_[i];
    const Status status = entries[i].revents != 0 ? s.handshake.advance(s.socket.get()) : Status();
    if (!status.ok()) {
      log_dropped(s.socket.get(), status.message());
      note_refused(s, status);
    } else if (s.handshake.done()) {
      authenticated_.push_back(
          {std::move(s.socket), s.handshake.from(), s.handshake.session(), s.local});
    } else if (s.deadline.passed()) {
      log_dropped(s.socket.get(), "it did not authenticate itself in time");
    } else {
      still.push_back(std::move(s));
    }
  }
  pending_ = std::move(still);
}

/// A connector that knows another secret sees it first, and leaves.
void Acceptor::note_refused(const PendingPeer& peer, const Status& why) {
  const bool left = why.code() == Code::remote_error;
  const bool wrong_proof = why.code() == Code::invalid_argument;
  if (!peer.handshake.awaits_proof() || (!left && !wrong_proof)) return;
  last_refused_ = describe_peer(peer.socket.get());
}

Status Acceptor::accept_waiting(const Listener& listener) {
  for (int accepted = 0; accepted < kMostAtOnce; ++accepted) {
    Result<UniqueFd> socket = accept_from(listener.fd);
    if (!socket.ok()) {
      if (pending_.empty()) return socket.status();
      drop_oldest();
      continue;
    }
    if (!*socket) return {};
    ANYCCL_CHECK(begin_handshake(*std::move(socket), listener));
  }
  return {};
}

Status Acceptor::begin_handshake(UniqueFd socket, const Listener& listener) {
  if (trust_ == Trust::same_user) {
    ANYCCL_TRY(const ucred peer, peer_of(socket.get()));
    if (peer.uid != ::geteuid()) {
      log_dropped(socket.get(), "it belongs to another user");
      return {};
    }
  }
  ANYCCL_TRY(Handshake handshake, Handshake::acceptor(secret_, to_));
  if (pending_.size() >= kMostPending) drop_oldest();
  pending_.push_back(
      {std::move(socket), std::move(handshake), Deadline::in(kHandshakeTime), listener.local});
  return {};
}

void Acceptor::drop_oldest() {
  log_dropped(pending_.front().socket.get(), "there are too many connections");
  pending_.pop_front();
}

}  // namespace anyccl::bootstrap
