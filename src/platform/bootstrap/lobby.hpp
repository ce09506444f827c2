#pragma once

#include <poll.h>

#include <deque>
#include <vector>

#include "base/deadline.hpp"
#include "platform/bootstrap/dial.hpp"
#include "platform/bootstrap/handshake.hpp"

namespace anyccl {

/// Accepts connections and lets each of them prove that it belongs here, many at once and without
/// waiting. Whoever says nothing, nonsense or too little in time is dropped and disturbs nobody; of
/// too many that have not proved anything the oldest goes.
class Lobby {
 public:
  /// A listening socket, which outlives the lobby.
  struct Door {
    int listener = -1;
    bool local = false;  ///< A unix socket.
  };
  /// `to`: as in Greeting, who is greeted here. With Trust::same_user all doors are local.
  Lobby(std::vector<Door> doors, const Secret& secret, std::uint32_t to, Trust trust)
      : doors_(std::move(doors)), secret_(secret), to_(to), trust_(trust) {}

  /// Appends what to poll for. The same number of entries goes to progress().
  void append_wanted(std::vector<pollfd>& entries) const;
  std::size_t wanted() const { return doors_.size() + strangers_.size(); }
  /// When to call progress() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const;
  /// `entries`: this lobby's, after poll(2). Errors: system_error when no connection can be
  /// accepted.
  Status progress(std::span<const pollfd> entries);
  /// Who has proved to belong here since the last call.
  std::vector<Connection> take_guests() { return std::exchange(guests_, {}); }

  /// Lets nobody in any more and drops whoever has not proved anything.
  void close() {
    doors_.clear();
    strangers_.clear();
  }

 private:
  struct Stranger {
    UniqueFd socket;
    Handshake handshake;
    Deadline deadline;
    bool local = false;
  };
  void advance_strangers(std::span<const pollfd> entries);
  Status open(const Door& door);
  Status let_in(UniqueFd socket, const Door& door);
  void drop_oldest();

  std::vector<Door> doors_;
  Secret secret_;
  std::uint32_t to_;
  Trust trust_;
  std::deque<Stranger> strangers_;  // oldest first
  std::vector<Connection> guests_;
};

}  // namespace anyccl
