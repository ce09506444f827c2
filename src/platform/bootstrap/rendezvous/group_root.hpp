#pragma once
// A root server may form several groups at once, and has a GroupRoot for each. RootServer calls it
// with its lock held, mostly in its own thread. Hello and left frames come in from the ranks, and
// place, table and failure frames go out to them (frame.hpp).

#include <poll.h>

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.hpp"
#include "platform/bootstrap/auth/acceptor.hpp"
#include "platform/bootstrap/group/member_table.hpp"
#include "platform/bootstrap/rendezvous/receiver.hpp"
#include "platform/bootstrap/rendezvous/relay_tree.hpp"
#include "platform/bootstrap/socket/socket_set.hpp"

namespace anyccl::bootstrap {

/// The root server's work for one group: it reads the hellos of ranks that the server has let in,
/// until all are there or something is wrong, and gives everyone the same answer. The server polls.
class GroupRoot {
 public:
  /// `acceptor`: of those ranks; messages say whom it refused. `sockets`: ranks that wait join it.
  /// `when_complete` is called once all ranks are there, before any of them hears it.
  GroupRoot(const Acceptor& acceptor, SocketSet& sockets, Trust trust, RelayTree tree,
            std::function<void()> when_complete)
      : acceptor_(acceptor),
        sockets_(sockets),
        trust_(trust),
        tree_(tree),
        when_complete_(std::move(when_complete)) {}
  GroupRoot(GroupRoot&&) = default;
  /// Takes the sockets out of the set: if a forked child has copies, closing them does not.
  ~GroupRoot();

  /// A rank whose hello comes next.
  void admit(Connection connection);
  /// Appends what to poll for beside the sockets of the set. The same entries go to progress().
  void append_wanted(std::vector<pollfd>& entries) const;
  /// When to call progress() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const;
  /// `ready`: sockets of the set, also of other groups.
  void progress(std::span<const pollfd> entries, std::span<const int> ready);
  /// No more ranks can come in, for `why`: the group fails. If it has its answer, a system_error is
  /// ignored.
  void fail_to_accept(const Status& why);
  /// Has the next progress() tell it to ranks that wait, unless there is an answer. Those on their
  /// way get a moment to come and hear it, too, if it `waits_for_late`. Later calls do nothing.
  void stop(bool waits_for_late);

  /// Ranks may still come: not all are there.
  bool is_open() const { return answer_.kind != Frame::table; }
  /// Every member has the table, or has been told why it was stopped, or the time for that is over.
  /// After another failure the group goes on telling it to late ranks.
  bool finished() const;
  bool has_begun() const { return table_.joined() > 0 || !arriving_.empty(); }
  std::size_t arriving() const { return arriving_.size(); }

 private:
  /// An authenticated rank: it is arriving until its hello is there, and then waits for the answer,
  /// here or at the leader that tells it.
  struct Member : Receiver {
    Inbox hello;
    Deadline hello_due;
  };

  /// Errors: why the group cannot be formed; once there is an answer, why nothing works any more.
  Status step(std::span<const pollfd> entries, std::span<const int> ready);
  /// Makes `why` the answer of the group. If it has one already, or none can be made, the group
  /// ends.
  void fail(const Status& why);
  /// Reads the hellos that have come; closes connections whose hello is overdue.
  Status read_from_arriving(std::span<const pollfd> entries);
  /// Once the hello is whole, joins the rank and takes `member` away. A wrong hello only closes the
  /// connection. Errors: why the group cannot be formed.
  Status read_hello(Member& member);
  /// Lets the rank wait for the answer, or sends it the answer if there is one.
  Status join(Member member, const HelloFrame& frame);
  /// Counts the rank's time limit, and adds its hello unless it is known.
  /// Errors: why the rank does not fit into the group.
  Status add(const HelloFrame& frame);
  bool is_known(const Hello& hello) const;
  bool is_complete() const { return table_.complete() && present_.size() == table_.size(); }
  std::optional<std::uint32_t> take_next_teller();
  /// Lets the leader wait here if it comes again or no other one is to tell it; else says
  /// which one, and closes its connection.
  Status place(const HelloFrame& frame, int socket);
  Status send_place(int socket, const Place& place, const Hello* teller);
  void note_timeout(const HelloFrame& frame);
  Status serve_waiting(std::span<const int> ready);
  /// Takes the reports of a rank that waits. Errors: why the group cannot be formed, also that a
  /// rank has left.
  Status hear(Member& member);
  Status check_timeouts() const;
  /// Names the first rank that waits nowhere, and the leader that was to tell it. Requires that the
  /// table is complete and a rank is missing.
  Status lost_rank_error() const;
  std::string hint() const;

  /// Makes the table the answer if `outcome` is ok, else the failure, tells those that wait, and
  /// with the table drops ranks whose hello has not come. Errors: why there can be no answer.
  Status settle(const Status& outcome);
  /// Begins with a new random salt in each call: the secret of the group follows from it.
  Result<std::vector<std::byte>> group_payload() const;
  void tell(int socket);
  void drop(int socket);

  const Acceptor& acceptor_;
  SocketSet& sockets_;  // of those that wait: readable if they leave, or writable
  Trust trust_;
  RelayTree tree_;
  std::function<void()> when_complete_;
  MemberTable table_;
  std::vector<Member> arriving_;
  std::unordered_map<int, Member> waiting_;  // by socket
  Deadline first_timeout_;                   // of those; it goes first
  double first_timeout_s_ = 0;
  std::vector<std::uint32_t> tellers_;  // ranks of leaders that can tell others, as they came
  std::uint32_t leaders_ = 0;           // as far as each has a place in the tree
  std::unordered_map<std::uint32_t, std::uint32_t> teller_of_;  // ranks of those sent elsewhere
  std::set<std::uint32_t> present_;  // ranks that wait, here or at the leader that tells them
  FinalReply answer_;                // without payload while ranks are missing
  std::set<std::uint32_t> told_;     // ranks that have the answer, or whose leader has
  bool stopped_ = false, waits_for_late_ = false, broken_ = false;
  Deadline end_;
};

}  // namespace anyccl::bootstrap
