#include "platform/bootstrap/auth/acceptor.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::chrono::seconds kHandshakeTime{20};
constexpr std::chrono::seconds kPatience{1};
constexpr std::size_t kMostPending = 1024;
constexpr int kMostAtOnce = 256;  // a flood must not keep the others waiting

void log_dropped(int fd, std::string_view why) {
  if (log_enabled(LogSubsystem::net))
    log(LogSubsystem::net, "dropped a connection from {}: {}", describe_peer(fd), why);
}

}  // namespace

Acceptor::Acceptor(std::vector<Listener> listeners, Secrets secrets, std::uint32_t to, Trust trust,
                   Handshake::Welcome welcome, bool encrypts)
    : listeners_(std::move(listeners)),
      secrets_(std::move(secrets)),
      to_(to),
      trust_(trust),
      welcome_(std::move(welcome)),
      encrypts_(encrypts),
      spare_(::eventfd(0, EFD_CLOEXEC)) {}

void Acceptor::append_wanted(std::vector<pollfd>& entries) const {
  const bool accepts = !stalled() && !full();
  for (const Listener& listener : listeners_)
    entries.push_back({accepts ? listener.fd : -1, POLLIN, 0});
  for (const PendingPeer& s : pending_)
    entries.push_back({s.socket.get(), s.handshake.events(), 0});
}

int Acceptor::poll_ms(int most) const {
  if (pending_.empty()) return most;
  if (full()) most = pending_.front().patience.poll_ms(most);
  if (stalled()) most = stalled_.poll_ms(most);
  return pending_.front().deadline.poll_ms(most);
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
      note_if_other_secret(s);
    } else if (s.handshake.done()) {
      authenticated_.push_back({std::move(s.socket),
                                s.handshake.from(),
                                s.handshake.session(),
                                s.local,
                                {},
                                s.handshake.take_stream(),
                                s.handshake.meeting()});
    } else if (s.deadline.passed()) {
      log_dropped(s.socket.get(), "it did not authenticate itself in time");
    } else {
      still.push_back(std::move(s));
    }
  }
  pending_ = std::move(still);
}

void Acceptor::note_if_other_secret(const PendingPeer& peer) {
  if (!peer.handshake.met_another_secret()) return;
  last_refused_ = describe_peer(peer.socket.get());
  ++refused_;
}

std::string Acceptor::refusals() const {
  if (refused_ == 0) return "";
  const std::string others =
      refused_ == 1 ? "" : fmt::format(" ({} connections were, this is the last)", refused_);
  return fmt::format("a process at {} was refused, as it knows another secret{}", last_refused_,
                     others);
}

Status Acceptor::accept_waiting(const Listener& listener) {
  for (int accepted = 0; accepted < kMostAtOnce && !full(); ++accepted) {
    Result<UniqueFd> socket = accept_from(listener.fd);
    const bool shortage = socket.status().code() == Code::system_error;
    if (shortage)
      return has_waiting_connection(listener.fd) ? on_shortage(socket.status()) : Status();
    ANYCCL_CHECK(socket.status());
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
  ANYCCL_TRY(Handshake handshake,
             Handshake::acceptor(secrets_, to_, welcome_, encrypts_ && !listener.local));
  if (pending_.size() >= std::min(kMostPending, room_)) drop_oldest();
  pending_.push_back({std::move(socket), std::move(handshake), Deadline::in(kHandshakeTime),
                      Deadline::in(kPatience), listener.local});
  return {};
}

/// Nobody is accepted until the oldest pending peer has had time to prove itself; then it is
/// dropped. With none pending, all that wait are turned away and `why` is returned.
Status Acceptor::on_shortage(const Status& why) {
  if (pending_.empty()) {
    turn_away_waiting();
    return why;
  }
  if (pending_.front().patience.passed())
    drop_oldest();
  else
    stalled_ = pending_.front().patience;
  return {};
}

void Acceptor::turn_away_waiting() {
  const Answer answer = refusal_of(Refusal::no_descriptors);
  spare_.reset();
  for (const Listener& listener : listeners_) {
    for (int turned = 0; turned < kMostAtOnce && has_waiting_connection(listener.fd); ++turned) {
      const Result<UniqueFd> socket = accept_from(listener.fd);
      if (!socket.ok() || !*socket) break;
      // Unread bytes would reset the connection, and the answer might be lost.
      Greeting greeting;
      static_cast<void>(::recv(socket->get(), &greeting, sizeof greeting, MSG_DONTWAIT));
      static_cast<void>(::send(socket->get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT));
    }
  }
  spare_.reset(::eventfd(0, EFD_CLOEXEC));
}

void Acceptor::drop_oldest() {
  log_dropped(pending_.front().socket.get(), "there are too many connections");
  pending_.pop_front();
}

}  // namespace anyccl::bootstrap
