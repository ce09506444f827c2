#include "platform/bootstrap/rendezvous/join.hpp"

#include <poll.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/group/table.hpp"
#include "platform/bootstrap/rendezvous/frame_reader.hpp"
#include "platform/bootstrap/rendezvous/host_meeting.hpp"
#include "platform/bootstrap/rendezvous/leader.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

/// How long a rank waits for the answer before it looks whether the leader of its host still runs:
/// so seldom that the leader of 64 ranks spends no time worth mention on it, and soon against the
/// time limits of jobs.
constexpr milliseconds kLookTime{2000};

/// One rank's way to the answer.
struct Joiner {
  const RendezvousAddress& rendezvous;
  const Hello& mine;
  Deadline deadline;
  Deadline::Clock::time_point begun = Deadline::Clock::now();
};

/// Where a rank waits for the answer.
struct Peer {
  Connection connection;
  std::string name;
  bool leads_this_host = false;
};

Result<Peer> reach_root(const Joiner& joiner) {
  ANYCCL_TRY(const Source source, root_source(joiner.rendezvous, joiner.mine));
  Dial dial(joiner.rendezvous.secret, source.target);
  Result<Connection> connection =
      wait_for_connection(dial, joiner.deadline, joiner.rendezvous.is_here);
  if (connection.status().code() == Code::timeout)
    return could_not_reach(joiner.mine, source, dial);
  if (!connection.ok())
    return error(connection.status().code(), "{} cannot join: {}", describe(joiner.mine),
                 connection.status().message());
  return Peer{*std::move(connection), source.name};
}

Peer leader_at(Connection connection) {
  const Result<ucred> process = peer_of(connection.socket.get());
  return {std::move(connection),
          process.ok() ? fmt::format("the rank that leads this host (pid {})", process->pid)
                       : "the rank that leads this host",
          true};
}

Status say_hello(const Joiner& joiner, const Peer& to) {
  const int fd = to.connection.socket.get();
  const auto waited =
      std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - joiner.begun);
  const HelloFrame hello = hello_frame(joiner.mine, joiner.deadline, waited);
  ANYCCL_TRY(const FrameHeader header, seal(to.connection.session, Frame::hello, bytes_of(hello)));
  ANYCCL_CHECK(send_all(fd, bytes_of(header), joiner.deadline, to.name));
  return send_all(fd, bytes_of(hello), joiner.deadline, to.name);
}

/// Until something has come. Errors: timeout when nothing will: the deadline has passed, or the
/// leader hangs.
Status await_more(const Joiner& joiner, const Peer& from) {
  const int fd = from.connection.socket.get();
  if (!from.leads_this_host) return wait_for(fd, POLLIN, joiner.deadline, from.name);
  for (;;) {
    const Deadline look = std::min(joiner.deadline, Deadline::in(kLookTime));
    const Status came = wait_for(fd, POLLIN, look, from.name);
    if (came.code() != Code::timeout || joiner.deadline.passed()) return came;
    ANYCCL_TRY(const bool silent,
               has_silent_leader(joiner.rendezvous, joiner.mine, joiner.deadline));
    if (silent && !has_waiting_connection(fd))
      return error(Code::timeout, "{} does not answer: it is stopped, or hangs", from.name);
  }
}

/// Says hello, and waits for the answer.
Result<FinalReply> ask(const Joiner& joiner, const Peer& peer) {
  ANYCCL_CHECK(say_hello(joiner, peer));
  FrameReader reader(largest_reply, joiner.mine.size);
  for (;;) {
    const Connection& from = peer.connection;
    ANYCCL_TRY(std::optional<ReceivedFrame> frame,
               reader.next(from.socket.get(), from.session, peer.name));
    if (!frame) {
      ANYCCL_CHECK(await_more(joiner, peer));
      continue;
    }
    if (frame->kind == Frame::table || frame->kind == Frame::failure)
      return FinalReply::of(*std::move(frame));
    return error(Code::remote_error, "{} answered in a form that cannot be understood", peer.name);
  }
}

/// Derives the group's secret, too, and does not look whether this rank's hello is in the table.
/// Errors: the failure that `reply` carries; else as decode_table().
Result<Group> read_group(const Joiner& joiner, const FinalReply& reply) {
  if (reply.kind == Frame::failure) return read_failure(*reply.payload);
  const Bytes payload = *reply.payload;
  if (payload.size() < sizeof(GroupHead))
    return error(Code::remote_error, "the root server sent {} bytes for a table of {} ranks",
                 payload.size(), joiner.mine.size);
  Group group;
  ANYCCL_TRY(group.secret,
             joiner.rendezvous.secret.derive("group", payload.first(sizeof(GroupHead))));
  ANYCCL_TRY(group.members, decode_table(payload.subspan(sizeof(GroupHead)), joiner.mine.size));
  return group;
}

Result<Group> join_small(const Joiner& joiner) {
  ANYCCL_TRY(const Peer root, reach_root(joiner));
  ANYCCL_TRY(const FinalReply reply, ask(joiner, root));
  return read_group(joiner, reply);
}

/// `lost`: why it has lost the leader that spoke for it, if it has.
Result<Group> join_as_leader(const Joiner& joiner, const Listeners* listeners, UniqueFd host,
                             const Status& lost) {
  const Attendance attendance{joiner.mine, joiner.deadline, joiner.begun, lost};
  ANYCCL_TRY(const FinalReply reply,
             lead(joiner.rendezvous, attendance, listeners, std::move(host)));
  return read_group(joiner, reply);
}

/// The end of a wait at the leader of the host.
struct AtLeader {
  enum Outcome {
    joined,
    another_meeting,  ///< The leader belongs to one of the same ranks, which is about to end.
    lost,             ///< The leader has gone.
    hangs,            ///< The leader does not answer.
  };
  Outcome outcome = another_meeting;
  Group group;  ///< If it has joined.
  Status why;   ///< If the leader is lost or hangs.
};

/// A leader that is lost, hangs or belongs to another meeting is an outcome, not an error.
/// Errors: the failure that the leader tells; timeout when this rank is out of time.
Result<AtLeader> join_through(const Joiner& joiner, const Peer& leader) {
  const Result<FinalReply> reply = ask(joiner, leader);
  if (!reply.ok() && joiner.deadline.passed())
    return error(Code::timeout, "{} did not answer {} in time; {}", leader.name,
                 describe(joiner.mine), joiner.rendezvous.advice);
  if (!reply.ok()) {
    log(LogSubsystem::net, "{}; {} joins anew", reply.status().message(), describe(joiner.mine));
    const bool hangs = reply.status().code() == Code::timeout;
    return AtLeader{hangs ? AtLeader::hangs : AtLeader::lost, {}, reply.status()};
  }
  Result<Group> group = read_group(joiner, *reply);
  if (reply->kind == Frame::failure) return group.status();
  if (!group.ok() || !same_call(group->members[joiner.mine.rank], joiner.mine)) return AtLeader();
  return AtLeader{AtLeader::joined, *std::move(group), {}};
}

/// Its leader hangs, and may have told the root server of this rank. As long as the connection to
/// it is open, it does not tell that this rank left.
Result<Group> join_beside(const Joiner& joiner, const Listeners* listeners, const Status& hangs) {
  Result<Group> group = join_as_leader(joiner, listeners, {}, {});
  if (group.status().code() != Code::timeout) return group;
  return error(Code::timeout, "{}; {}", hangs.message(), group.status().message());
}

/// A rank that loses its leader meets the others of its host again: one of them leads now.
Result<Group> join_large(const Joiner& joiner, const Listeners* listeners) {
  for (Status lost;;) {
    ANYCCL_TRY(HostPlace place, meet_on_host(joiner.rendezvous, joiner.mine, joiner.deadline));
    if (!place.leader) return join_as_leader(joiner, listeners, std::move(place.listener), lost);
    const Peer leader = leader_at(*std::move(place.leader));
    ANYCCL_TRY(AtLeader at_leader, join_through(joiner, leader));
    if (at_leader.outcome == AtLeader::joined) return std::move(at_leader.group);
    if (at_leader.outcome == AtLeader::hangs) return join_beside(joiner, listeners, at_leader.why);
    lost = at_leader.why;
  }
}

}  // namespace

Result<Group> join(const UniqueId& id, const Hello& mine, Deadline deadline,
                   const Listeners* listeners, bool is_here) {
  RendezvousAddress rendezvous;
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  rendezvous.endpoints = own.endpoints_to(id.addresses());
  rendezvous.secret = Secret(id.secret);
  rendezvous.meeting = id.meeting;
  rendezvous.is_here = is_here;
  rendezvous.advice =
      "the process that made the unique id must still run and be reachable from here "
      "(ANYCCL_SOCKET_IFNAME there chooses its addresses), and an id serves one group only";
  return join_at(rendezvous, mine, deadline, listeners);
}

Result<Group> join_at(const RendezvousAddress& rendezvous, const Hello& mine, Deadline deadline,
                      const Listeners* listeners) {
  ANYCCL_CHECK(check_hello(mine));
  const Joiner joiner{rendezvous, mine, deadline};
  if (!rendezvous.tree.is_large(mine.size)) return join_small(joiner);
  return join_large(joiner, listeners);
}

}  // namespace anyccl::bootstrap
