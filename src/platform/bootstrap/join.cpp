#include "platform/bootstrap/join.hpp"

#include <poll.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/frame_reader.hpp"
#include "platform/bootstrap/host_meeting.hpp"
#include "platform/bootstrap/interfaces.hpp"
#include "platform/bootstrap/leader.hpp"
#include "platform/bootstrap/table.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

/// One rank's way to the answer.
struct Joiner {
  const RendezvousAddress& rendezvous;
  const Hello& mine;
  Deadline deadline;
};

Result<Connection> reach(const Joiner& joiner, const Source& source) {
  Dial dial(joiner.rendezvous.secret, source.target);
  std::vector<pollfd> entries;
  for (;;) {
    if (Status s = dial.advance(); !s.ok())
      return error(s.code(), "{} cannot join: {}", describe(joiner.mine), s.message());
    if (dial.done()) return dial.take();
    if (joiner.deadline.passed()) return could_not_reach(joiner.mine, source, dial);
    entries.clear();
    dial.append_wanted(entries);
    ::poll(entries.data(), entries.size(), joiner.deadline.poll_ms(dial.poll_ms(1000)));
  }
}

/// Says hello over `to`, which leads to `peer`, and waits for the answer.
Result<FinalReply> ask(const Joiner& joiner, const Connection& to, milliseconds waited,
                       std::string_view peer) {
  const int fd = to.socket.get();
  const HelloFrame hello = hello_frame(joiner.mine, joiner.deadline, waited);
  ANYCCL_TRY(const FrameHeader header, seal(to.session, Frame::hello, bytes_of(hello)));
  ANYCCL_CHECK(send_all(fd, bytes_of(header), joiner.deadline, peer));
  ANYCCL_CHECK(send_all(fd, bytes_of(hello), joiner.deadline, peer));
  FrameReader reader(largest_reply, joiner.mine.size);
  for (;;) {
    Result<std::optional<ReceivedFrame>> frame = reader.next(fd, to.session, peer);
    ANYCCL_CHECK(frame.status());
    if (!*frame) {
      ANYCCL_CHECK(wait_for(fd, POLLIN, joiner.deadline, peer));
      continue;
    }
    const Frame kind = (*frame)->kind;
    if (kind == Frame::table || kind == Frame::failure) return FinalReply::of(**std::move(frame));
    return error(Code::remote_error, "{} answered in a form that cannot be understood", peer);
  }
}

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
  const auto begin = Deadline::Clock::now();
  ANYCCL_TRY(const Source source, root_source(joiner.rendezvous, joiner.mine));
  ANYCCL_TRY(const Connection root, reach(joiner, source));
  const auto waited = std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - begin);
  ANYCCL_TRY(const FinalReply reply, ask(joiner, root, waited, source.name));
  return read_group(joiner, reply);
}

Result<Group> join_as_leader(const Joiner& joiner, const Listeners* listeners, UniqueFd host) {
  ANYCCL_TRY(const FinalReply reply,
             lead(joiner.rendezvous, joiner.mine, joiner.deadline, listeners, std::move(host)));
  return read_group(joiner, reply);
}

bool has_this_call(const Group& group, const Hello& mine) {
  return std::ranges::equal(bytes_of(group.members[mine.rank]), bytes_of(mine));
}

/// Absent: the leader has gone, or belongs to another meeting of the same ranks that is about to end.
Result<std::optional<Group>> join_through(const Joiner& joiner, const Connection& leader,
                                          milliseconds waited) {
  Result<FinalReply> reply = ask(joiner, leader, waited, "the rank that leads this host");
  if (!reply.ok() && joiner.deadline.passed())
    return error(Code::timeout,
                 "{} heard nothing in time from the rank that speaks to the root server for this "
                 "host; {}",
                 describe(joiner.mine), joiner.rendezvous.advice);
  if (!reply.ok()) {
    log(LogSubsystem::net, "{}; {} joins anew", reply.status().message(), describe(joiner.mine));
    return std::optional<Group>();
  }
  ANYCCL_TRY(Group group, read_group(joiner, *reply));
  if (!has_this_call(group, joiner.mine)) return std::optional<Group>();
  return std::optional(std::move(group));
}

/// A rank that loses its leader meets the others of its host again: one of them leads now.
Result<Group> join_large(const Joiner& joiner, const Listeners* listeners) {
  const auto begin = Deadline::Clock::now();
  for (;;) {
    ANYCCL_TRY(HostPlace place, meet_on_host(joiner.rendezvous, joiner.mine, joiner.deadline));
    if (!place.leader) return join_as_leader(joiner, listeners, std::move(place.listener));
    const auto waited = std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - begin);
    ANYCCL_TRY(std::optional<Group> group, join_through(joiner, *place.leader, waited));
    if (group) return *std::move(group);
  }
}

}  // namespace

Result<Group> join(const UniqueId& id, const Hello& mine, Deadline deadline,
                   const Listeners* listeners) {
  RendezvousAddress rendezvous;
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  rendezvous.endpoints = own.endpoints_to(id.addresses());
  rendezvous.secret = Secret(id.secret);
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
