#pragma once
// An acceptor accepts connections and lets each of them prove that it belongs here, many at once
// and without waiting. Root servers, leaders of hosts (Relay) and ranks that connect with their
// peers have one. It has no thread: the owner polls. Each connection begins with the acceptor's end
// of a handshake (handshake.hpp).

#include <poll.h>

#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "platform/bootstrap/auth/dial.hpp"
#include "platform/bootstrap/auth/handshake.hpp"

namespace anyccl::bootstrap {

/// Drops whoever says nothing, nonsense or too little in time, which disturbs nobody; of too many
/// that have not proved anything the oldest goes. With no descriptor left it waits for those whose
/// proof is on its way, and then turns everyone away and fails.
class Acceptor {
 public:
  /// A listening socket, which outlives the acceptor.
  struct Listener {
    int fd = -1;
    bool local = false;  ///< A unix socket.
  };
  /// `to`: as in Greeting, who is greeted here. With Trust::same_user all listeners are local.
  /// `welcome`: as in Handshake. `encrypts`: connections over the network.
  Acceptor(std::vector<Listener> listeners, Secrets secrets, std::uint32_t to, Trust trust,
           Handshake::Welcome welcome = {}, bool encrypts = false);

  /// Lets in no more than so many at a time from now on: others wait in the kernel's queue until
  /// one of them is done, or was silent for too long. Default: no limit of this kind.
  void let_in_at_most(std::size_t room) { room_ = room; }
  /// Appends what to poll for. The same number of entries goes to progress().
  void append_wanted(std::vector<pollfd>& entries) const;
  std::size_t wanted() const { return listeners_.size() + pending_.size(); }
  /// When to call progress() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const;
  /// `entries`: this acceptor's, after poll(2). Errors: system_error when no connection can be
  /// accepted; those that were waiting have been told.
  Status progress(std::span<const pollfd> entries);
  /// Peers that have authenticated themselves since the last call.
  std::vector<Connection> take_authenticated() { return std::exchange(authenticated_, {}); }
  /// The last anyccl process that knew another secret, "10.0.0.2:4711"; empty: none. It was not
  /// authenticated, so this is for messages only.
  const std::string& last_refused() const { return last_refused_; }
  /// "a process at 10.0.0.2:4711 was refused, as it knows another secret", and how often that
  /// happened; empty: it did not.
  std::string refusals() const;

  /// Accepts no more connections and drops those that are not authenticated.
  void close() {
    listeners_.clear();
    pending_.clear();
  }

 private:
  struct PendingPeer {
    UniqueFd socket;
    Handshake handshake;
    Deadline deadline, patience;  ///< Patience: with others that wait for its descriptor.
    bool local = false;
  };
  bool full() const {
    return pending_.size() >= room_ && (pending_.empty() || !pending_.front().patience.passed());
  }
  bool stalled() const { return !pending_.empty() && !stalled_.passed(); }
  void advance_pending(std::span<const pollfd> entries);
  /// Accepts those that wait there, while it is not full(), and only so many at once.
  Status accept_waiting(const Listener& listener);
  /// Drops a socket of another user, which is no error, and the oldest peer if too many are
  /// pending.
  Status begin_handshake(UniqueFd socket, const Listener& listener);
  Status on_shortage(const Status& why);
  void turn_away_waiting();
  void drop_oldest();
  void note_if_other_secret(const PendingPeer& peer);

  std::vector<Listener> listeners_;
  Secrets secrets_;
  std::uint32_t to_;
  Trust trust_;
  Handshake::Welcome welcome_;
  bool encrypts_;
  std::deque<PendingPeer> pending_;  // oldest first
  std::vector<Connection> authenticated_;
  std::string last_refused_;
  std::size_t refused_ = 0;
  std::size_t room_ = std::numeric_limits<std::size_t>::max();
  Deadline stalled_ = Deadline::in(std::chrono::nanoseconds(0));  // accepts nobody until then
  UniqueFd spare_;  // given up to tell others that there is no descriptor left
};

}  // namespace anyccl::bootstrap
