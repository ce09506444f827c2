#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.hpp"
#include "platform/bootstrap/acceptor.hpp"
#include "platform/bootstrap/member_table.hpp"
#include "platform/bootstrap/receiver.hpp"
#include "platform/bootstrap/relay_tree.hpp"
#include "platform/bootstrap/socket_set.hpp"

namespace anyccl::bootstrap {

/// The work of a root server, without its thread: it lets ranks in, reads their hellos until all
/// are there or something is wrong, and gives everyone the same answer. One poll(2) loop.
class RootLoop {
 public:
  /// `stop_event`: an eventfd.
  RootLoop(std::vector<UniqueFd> listeners, SocketSet sockets, const Secret& secret, Trust trust,
           RelayTree tree, int stop_event);
  /// Returns when every member has the table. After a failure it goes on telling it to whoever
  /// comes late, until the stop event: it is the number kStopNow, or kStopWhenTold to give late
  /// ranks a moment.
  void run();
  static constexpr std::uint64_t kStopNow = 1, kStopWhenTold = 2;

 private:
  /// An authenticated rank: it is arriving until its hello is there, and then waits for the answer,
  /// here or at the leader that tells it.
  struct Member : Receiver {
    Inbox hello;
    Deadline hello_due;
  };

  bool finished() const;
  /// Errors: why the group cannot be formed; once there is an answer, why nothing works any more.
  Status step();
  void stop();
  Status poll_once(std::vector<pollfd>& entries);
  int poll_ms() const;
  Status let_in(std::span<const pollfd> entries);
  void admit_authenticated();
  Status read_from_arriving(std::span<const pollfd> entries);
  Status read_hello(Member& member);
  Status join(Member member, const HelloFrame& frame);
  Status add(const HelloFrame& frame);
  bool is_known(const Hello& hello) const;
  bool is_complete() const { return table_.complete() && present_.size() == table_.size(); }
  std::optional<std::uint32_t> next_teller();
  Status place(const HelloFrame& frame, int socket);
  Status send_place(int socket, const Place& place, const Hello* teller);
  void note_timeout(const HelloFrame& frame);
  Status serve_waiting();
  Status hear(Member& member);
  Status check_timeouts() const;
  Status who_is_lost() const;
  std::string hint() const;
  void warn_of_refused();

  /// Errors: why there can be no answer at all.
  Status settle(const Status& outcome);
  Result<std::vector<std::byte>> group_payload() const;
  void tell(int socket);
  void drop(int socket);
  void close_listeners();

  std::vector<UniqueFd> listeners_;
  Acceptor acceptor_;
  Trust trust_;
  int stop_event_;
  MemberTable table_;
  std::vector<Member> arriving_;
  std::unordered_map<int, Member> waiting_;  // by socket
  SocketSet sockets_;                        // of those: readable if they leave, or writable
  Deadline first_timeout_;                   // of those; it goes first
  double first_timeout_s_ = 0;
  RelayTree tree_;
  std::vector<std::uint32_t> tellers_;  // ranks of leaders that can tell others, as they came
  std::uint32_t leaders_ = 0;           // as far as each has a place in the tree
  std::unordered_map<std::uint32_t, std::uint32_t> teller_of_;  // ranks of those sent elsewhere
  std::set<std::uint32_t> present_;  // ranks that wait, here or at the leader that tells them
  FinalReply answer_;                // without payload while ranks are missing
  std::set<std::uint32_t> told_;     // ranks that have the answer, or whose leader has
  bool stopped_ = false, waits_for_late_ = false, warned_ = false;
  Deadline end_;
};

}  // namespace anyccl::bootstrap
