#pragma once
// A relay passes the root server's answer on in a large group: from a leader to the ranks of its
// host and to other leaders. lead() makes one, and polls for it in the thread that joins. Hello
// and left frames come in, and the answer goes out as a table or failure frame (frame.hpp).

#include <poll.h>

#include <span>
#include <vector>

#include "platform/bootstrap/auth/acceptor.hpp"
#include "platform/bootstrap/rendezvous/receiver.hpp"
#include "platform/bootstrap/socket/listeners.hpp"

namespace anyccl::bootstrap {

/// The work of the leader of a host for the ranks that it tells the root server's answer, those of
/// its host and other leaders: it lets them in, hears what they report, and sends them the answer.
/// The caller polls.
class Relay {
 public:
  /// Ranks of its host that it lets in; more of them meet another leader. To tell a thousand took
  /// seconds on a host whose cores they all want.
  static constexpr int kMostOfHost = 64;

  /// `host`: where ranks of this host call; none: they do not.
  Relay(UniqueFd host, const Secret& secret, Trust trust);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() { close(); }

  /// From now on leaders may come, to `listeners`, which outlive it; with Trust::same_user only
  /// over unix sockets. Until then, and after the answer, leaders that call there wait in the
  /// kernel's queue: ranks that have the table already are to meet no process that sends them away.
  void let_leaders_in(const Listeners& listeners);

  /// Appends what to poll for. The same number of entries goes to progress().
  void append_wanted(std::vector<pollfd>& entries) const;
  /// When to call progress() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const;
  /// Goes on as far as possible. Lets nobody in any more where a connection cannot be accepted, and
  /// no more ranks of its host once kMostOfHost are here.
  void progress(std::span<const pollfd> entries);
  /// The words of the waiting ranks since the last call; nothing after the answer.
  std::vector<Report> take_reports() { return std::exchange(reports_, {}); }

  /// The answer, for those that are here; nobody can come any more. Errors: system_error.
  Status answer(FinalReply reply);
  /// Every rank that was here has the answer, or has gone.
  bool all_told() const { return waiting_.empty(); }

 private:
  /// A rank that has not yet said hello may go unnoticed.
  struct Member : Receiver {
    bool came = false, of_host = false;
  };
  /// Takes the rank among those that wait; drops the connection if there is an answer.
  void admit(Connection connection, bool of_host);
  void serve(Member& member);
  void hear(Member& member);
  void close();
  void close_host();

  static constexpr std::size_t kOfHost = 0;  // in acceptors_
  UniqueFd host_;
  int of_host_ = 0;  // ranks that it has let in, but for those that went without a hello
  Secret secret_;
  Trust trust_;
  std::vector<Acceptor> acceptors_;  // of ranks of this host, and of leaders
  std::vector<Member> waiting_;
  std::vector<Report> reports_;
  FinalReply reply_;
};

}  // namespace anyccl::bootstrap
