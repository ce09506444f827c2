#include "platform/bootstrap/lobby.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl {
namespace {

constexpr std::chrono::seconds kHandshakeTime{20};
constexpr std::size_t kMostStrangers = 1024;
constexpr int kMostAtOnce = 256;  // a flood must not keep the others waiting

void log_dropped(int fd, std::string_view why) {
  if (log_enabled(LogLevel::info))
    log(LogLevel::info, "dropped a connection from {}: {}", describe_peer(fd), why);
}

}  // namespace

void Lobby::append_wanted(std::vector<pollfd>& entries) const {
  for (const Door& door : doors_) entries.push_back({door.listener, POLLIN, 0});
  for (const Stranger& s : strangers_) entries.push_back({s.socket.get(), s.handshake.events(), 0});
}

int Lobby::poll_ms(int most) const {
  return strangers_.empty() ? most : strangers_.front().deadline.poll_ms(most);
}

Status Lobby::progress(std::span<const pollfd> entries) {
  advance_strangers(entries.subspan(doors_.size()));
  for (std::size_t i = 0; i < doors_.size(); ++i)
    if (entries[i].revents != 0) ANYCCL_CHECK(open(doors_[i]));
  return {};
}

void Lobby::advance_strangers(std::span<const pollfd> entries) {
  std::deque<Stranger> still;
  for (std::size_t i = 0; i < strangers_.size(); ++i) {
    Stranger& s = strangers_[i];
    const Status status = entries[i].revents != 0 ? s.handshake.advance(s.socket.get()) : Status();
    if (!status.ok()) {
      log_dropped(s.socket.get(), status.message());
    } else if (s.handshake.done()) {
      guests_.push_back({std::move(s.socket), s.handshake.from(), s.handshake.session(), s.local});
    } else if (s.deadline.passed()) {
      log_dropped(s.socket.get(), "it did not authenticate itself in time");
    } else {
      still.push_back(std::move(s));
    }
  }
  strangers_ = std::move(still);
}

Status Lobby::open(const Door& door) {
  for (int accepted = 0; accepted < kMostAtOnce; ++accepted) {
    Result<UniqueFd> socket = accept_from(door.listener);
    if (!socket.ok()) {
      if (strangers_.empty()) return socket.status();
      drop_oldest();
      continue;
    }
    if (!*socket) return {};
    ANYCCL_CHECK(let_in(*std::move(socket), door));
  }
  return {};
}

Status Lobby::let_in(UniqueFd socket, const Door& door) {
  if (trust_ == Trust::same_user) {
    ANYCCL_TRY(const ucred peer, peer_of(socket.get()));
    if (peer.uid != ::geteuid()) {
      log_dropped(socket.get(), "it belongs to another user");
      return {};
    }
  }
  ANYCCL_TRY(Handshake handshake, Handshake::acceptor(secret_, to_));
  if (strangers_.size() >= kMostStrangers) drop_oldest();
  strangers_.push_back(
      {std::move(socket), std::move(handshake), Deadline::in(kHandshakeTime), door.local});
  return {};
}

void Lobby::drop_oldest() {
  log_dropped(strangers_.front().socket.get(), "there are too many connections");
  strangers_.pop_front();
}

}  // namespace anyccl
