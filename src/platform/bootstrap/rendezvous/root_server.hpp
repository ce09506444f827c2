#pragma once
// The root server brings the ranks of a group together. Rank 0 of a launched job starts it, or the
// process that makes a unique id. It serves from a thread of its own ("anyccl-root"); other
// threads start it, and add and end groups. Each connection begins with a handshake
// (auth/handshake.hpp), and frames follow (frame.hpp).

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"
#include "platform/bootstrap/rendezvous/group_root.hpp"

namespace anyccl::bootstrap {

/// Where the ranks of one group, or of several, meet: collects a hello from each rank of a group
/// and, when all are there, sends everyone the table of all; in a large group, leaders of hosts
/// come, and some of them are sent the table, which send it on (see RelayTree). Greetings say which
/// meeting a rank is for. Serves from a thread of its own, which ends, and listens no more, once
/// its last group is formed.
///
/// A group fails, and every member is told why, when a rank joins twice, when sizes, settings or
/// versions differ, when a member leaves, or when a member's time limit is nearly over (then the
/// missing ranks are named). Members that come later are told the same, until it is stopped. Before
/// the first member has joined it waits without limit.
class RootServer {
 public:
  /// Listens on `listeners` for one group; with Trust::same_user all are unix sockets.
  static Result<std::unique_ptr<RootServer>> start(std::vector<UniqueFd> listeners,
                                                   const Secret& secret, Trust trust,
                                                   RelayTree tree = {}, std::uint32_t meeting = 0);
  RootServer(const RootServer&) = delete;
  RootServer& operator=(const RootServer&) = delete;
  ~RootServer() { stop(); }

  /// Serves one more group, whose ranks have `secret` and say `meeting`, a number of its own.
  /// False: the server has ended.
  bool serve(std::uint32_t meeting, const Secret& secret);
  /// Whether the group of this meeting is still to be formed, or told why not.
  bool serves(std::uint32_t meeting) const;
  /// Stops one group's meeting, as stop_when_told() does for all if `when_told`, else as stop().
  /// Returns when it is over. Any thread.
  void end_meeting(std::uint32_t meeting, bool when_told);

  /// Ends the server. Members that wait get an answer first (that it was stopped, if ranks are
  /// missing), which takes two seconds at most if a member is slow. May be called twice, by one
  /// thread. In a forked child it does nothing: the server stays the parent's.
  void stop() { end_all(false); }
  /// Ends the server after a failure, as stop() does, but gives ranks that are still on their way
  /// two seconds to come and hear of it; returns at once when all have.
  void stop_when_told() { end_all(true); }

 private:
  struct Served {
    Secret secret;
    GroupRoot root;
  };
  struct Polled {
    Served* meeting;  ///< Only the thread ends meetings.
    std::size_t entries;
  };

  /// Wakes the thread.
  struct Wakeup {
    static Result<Wakeup> make();
    void ring() const;
    UniqueFd heard;  ///< What the thread polls.
    UniqueFd rung;   ///< The other end of that, or empty if it is the same.
  };

  RootServer(std::vector<UniqueFd> listeners, Wakeup wakeup, SocketSet sockets, Trust trust,
             RelayTree tree);
  void run();
  Status poll_once(std::unique_lock<std::mutex>& lock);
  /// Hands ranks that were let in to the groups of their meetings. If no connection can be
  /// accepted, the groups that have begun fail.
  void let_in(std::span<const pollfd> entries);
  void warn_of_refused();
  void stop_meeting(Served& meeting, bool when_told);
  /// Ends all meetings and waits for the thread. `when_told`: as stop_when_told(), else as stop().
  void end_all(bool when_told);
  void close_unless_open();
  /// Drops meetings that are over, which ends the wait in end_meeting(), and listens no more if no
  /// other one is open.
  void forget_finished();

  pid_t owner_;
  Wakeup wakeup_;
  Trust trust_;
  RelayTree tree_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;  // a meeting has
  std::vector<UniqueFd> listeners_;
  Acceptor acceptor_;
  SocketSet sockets_;
  std::map<std::uint32_t, Served> meetings_;
  bool is_closed_ = false, warned_ = false;
  std::thread thread_;
};

}  // namespace anyccl::bootstrap
