#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"
#include "platform/bootstrap/dial.hpp"
#include "platform/bootstrap/relay_tree.hpp"
#include "platform/bootstrap/secret.hpp"

namespace anyccl::bootstrap {

/// Where the ranks of one group meet: collects a hello from each of them and, when all are there,
/// sends everyone the table of all; in a large group, leaders of hosts come, and some of them are sent the
/// table, which send it on (see RelayTree). Serves one group, from a thread of its own.
///
/// The group fails, and every member is told why, when a rank joins twice, when sizes, settings or
/// versions differ, when a member leaves, or when a member's time limit is nearly over (then the
/// missing ranks are named). Members that come later are told the same, until the server is
/// stopped. Before the first member has joined it waits without limit.
class RootServer {
 public:
  /// Listens on `listeners`; with Trust::same_user all are unix sockets.
  static Result<std::unique_ptr<RootServer>> start(std::vector<UniqueFd> listeners,
                                                   const Secret& secret, Trust trust,
                                                   RelayTree tree = {});
  RootServer(const RootServer&) = delete;
  RootServer& operator=(const RootServer&) = delete;
  ~RootServer() { stop(); }

  /// Ends the server. Members that wait get an answer first (that it was stopped, if ranks are
  /// missing), which takes two seconds at most if a member is slow. May be called twice, by one
  /// thread. In a forked child it does nothing: the server stays the parent's.
  void stop() { end(false); }
  /// The same after a failure, but ranks that are still on their way get two seconds to come and
  /// hear of it; returns at once when all have.
  void stop_when_told() { end(true); }

 private:
  void end(bool when_told);
  RootServer(UniqueFd stop_event, std::thread thread)
      : owner_(::getpid()), stop_event_(std::move(stop_event)), thread_(std::move(thread)) {}

  pid_t owner_;
  UniqueFd stop_event_;
  std::thread thread_;
};

}  // namespace anyccl::bootstrap
