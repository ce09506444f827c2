#pragma once
// Ranks of a large group connect over the network when a communicator first uses a pair. With
// ANYCCL_RECONNECT those of a small group do so, too, and connections that were lost are made
// again. An OnDemand object does this for one rank of one group. One thread of the process
// ("anyccl-connect") drives those of all its groups. Each connection begins with a handshake.

#include <poll.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "anyccl/types.hpp"
#include "base/peer_socket.hpp"
#include "base/private_fd.hpp"
#include "platform/bootstrap/auth/acceptor.hpp"
#include "platform/bootstrap/auth/dial.hpp"
#include "platform/bootstrap/group/hello.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"
#include "platform/bootstrap/socket/listeners.hpp"

namespace anyccl::bootstrap {

/// Connects a rank with members of its group one by one, when it wants a connection or they do, as
/// long as the group lives. It has no thread and never waits.
///
/// Both ends of a pair may call each other at the same time and must end up with one connection.
/// The higher rank calls at once, the lower one after a moment in which the higher one may have
/// called. While the higher rank calls, it lets the lower one in only if it has got nowhere for a
/// while and has not committed itself in a handshake; then it gives its own call up. The lower rank
/// always lets the higher one in and gives its own call up.
///
/// Threads: one at a time.
class OnDemand {
 public:
  /// `reconnects`: members may call again, as they have lost their connections. `limit`: how long a
  /// call may take. `listeners` is what members[me] was made from. `own`: of this host. `encrypts`:
  /// as of connect_all().
  OnDemand(Listeners listeners, std::shared_ptr<const std::vector<Hello>> members, Rank me,
           const Secret& secret, bool force_tcp, OwnNetwork own, std::chrono::milliseconds limit,
           bool encrypts = false, bool reconnects = false);

  void want(Rank peer);
  /// The connection was lost. `limit`: how long the call may take. Nothing comes of it for a peer
  /// that was given up before.
  void want_again(Rank peer, std::chrono::milliseconds limit);
  /// Ends its calls, and drops the outcomes that were not taken. From now on members that it has
  /// not connected are refused, and are not called. Needs no memory.
  void give_up();

  /// Appends what to poll for; the same number of entries goes to progress().
  void append_wanted(std::vector<pollfd>& entries);
  /// When to call progress() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const;
  /// Goes on with calls from both sides; take_outcomes() gives what came of them. Logs a failure to
  /// let ranks in, and goes on.
  void progress(std::span<const pollfd> entries);

  /// What came of a call, or of one from the other end.
  struct Outcome {
    Rank peer{};
    Status problem;  ///< Ok, or why there is no connection, and there will be none.
    PeerSocket socket = {};
  };
  std::vector<Outcome> take_outcomes() { return std::exchange(outcomes_, {}); }

 private:
  struct Call {
    Deadline begins;  ///< Not before.
    Deadline yields;  ///< From then on the peer is let in.
    Deadline limit;
    std::optional<Dial> dial;
  };

  void call(Rank peer, std::chrono::milliseconds limit);
  /// Whether `from` may connect to this rank now. If so, stops this rank's own dial to it for a
  /// moment.
  bool make_way_for(std::uint32_t from);
  /// Notes the members that were let in as connected; drops another connection of a member that is
  /// connected, unless members may call again.
  void take_accepted();
  /// Begins the calls that are due, as long as not too many dials are under way, and goes on with
  /// those that have begun. Ends calls whose limit has passed.
  void advance_calls();
  void advance(std::uint32_t peer, Call& call);
  /// Makes the dial of `call`, whether it is due or not.
  /// Errors: system_error if the peer has no address to try.
  Status start_dial(std::uint32_t peer, Call& call);
  void note_connected(Connection connection, std::uint32_t peer);
  /// Ends the call and excludes `peer`: it is not called or let in any more.
  void note_failed(std::uint32_t peer, Status why);
  std::vector<Acceptor::Listener> listeners() const;
  std::size_t count_dials() const;

  PrivateFd unix_listener_;
  std::vector<PrivateFd> tcp_listeners_;
  const std::shared_ptr<const std::vector<Hello>> members_;
  const std::uint32_t me_;
  const Secret secret_;
  const bool force_tcp_, encrypts_, reconnects_;
  const std::chrono::milliseconds limit_;
  const OwnNetwork own_;
  Acceptor acceptor_;
  std::vector<bool> connected_;          // By rank.
  std::vector<bool> excluded_;           // By rank: this one, and those given up.
  std::map<std::uint32_t, Call> calls_;  // By peer.
  std::vector<Outcome> outcomes_;
  std::size_t accepting_entries_ = 0;  // The acceptor's in the last append_wanted().
};

}  // namespace anyccl::bootstrap
