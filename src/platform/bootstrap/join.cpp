#include "platform/bootstrap/join.hpp"

#include <limits>

#include "base/error.hpp"
#include "platform/bootstrap/frame.hpp"
#include "platform/bootstrap/interfaces.hpp"
#include "platform/bootstrap/table.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::string_view kRoot = "the root server";

Result<Connection> reach_root(const RendezvousAddress& rendezvous, const Hello& mine,
                              Deadline deadline) {
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  Dial dial(rendezvous.secret, {rendezvous.endpoints, mine.rank, kToRoot, rendezvous.trust,
                                own.missing_family(rendezvous.endpoints)});
  std::vector<pollfd> entries;
  for (;;) {
    if (Status s = dial.advance(); !s.ok())
      return error(s.code(), "{} cannot join: {}", describe(mine), s.message());
    if (dial.done()) return dial.take();
    if (deadline.passed())
      return error(Code::timeout, "{} could not reach the root server in time: {}; {}",
                   describe(mine), dial.problems(), rendezvous.advice);
    entries.clear();
    dial.append_wanted(entries);
    ::poll(entries.data(), entries.size(), deadline.poll_ms(dial.poll_ms(1000)));
  }
}

Status send_hello(const Connection& root, const Hello& mine, Deadline deadline,
                  std::chrono::milliseconds waited) {
  HelloFrame frame;
  frame.hello = mine;
  frame.waited_ms = static_cast<std::uint32_t>(waited.count());
  frame.timeout_ms =
      deadline.is_never()
          ? kForever
          : static_cast<std::uint32_t>(deadline.poll_ms(std::numeric_limits<int>::max()));
  ANYCCL_TRY(const FrameHeader header, seal(root.session, Frame::hello, bytes_of(frame)));
  ANYCCL_CHECK(send_all(root.socket.get(), bytes_of(header), deadline, kRoot));
  return send_all(root.socket.get(), bytes_of(frame), deadline, kRoot);
}

std::size_t largest_payload(Frame kind, const Hello& mine) {
  return kind == Frame::table ? sizeof(GroupHead) + mine.size * kMostEntryBytes
                              : sizeof(FailureHead) + kFailureText;
}

struct JoinReply {
  Frame kind = Frame::failure;
  std::vector<std::byte> payload;
};

Result<JoinReply> receive_reply(const Connection& root, const Hello& mine, Deadline deadline) {
  const Status malformed(Code::remote_error,
                         "the root server answered in a form that cannot be understood");
  FrameHeader header;
  ANYCCL_CHECK(
      recv_all(root.socket.get(), std::as_writable_bytes(std::span(&header, 1)), deadline, kRoot));
  JoinReply reply{static_cast<Frame>(header.kind), {}};
  if (reply.kind != Frame::table && reply.kind != Frame::failure) return malformed;
  if (header.bytes > largest_payload(reply.kind, mine)) return malformed;
  reply.payload.resize(header.bytes);
  ANYCCL_CHECK(recv_all(root.socket.get(), reply.payload, deadline, kRoot));
  ANYCCL_TRY(const bool sealed, is_sealed(root.session, header, reply.payload));
  if (!sealed) return malformed;
  return reply;
}

Result<Group> read_group(Bytes payload, const Secret& secret, const Hello& mine) {
  if (payload.size() < sizeof(GroupHead))
    return error(Code::remote_error, "the root server sent {} bytes for a table of {} ranks",
                 payload.size(), mine.size);
  Group group;
  ANYCCL_TRY(group.secret, secret.derive("group", payload.first(sizeof(GroupHead))));
  ANYCCL_TRY(group.members, decode_table(payload.subspan(sizeof(GroupHead)), mine.size));
  return group;
}

}  // namespace

Result<Group> join(const UniqueId& id, const Hello& mine, Deadline deadline) {
  RendezvousAddress rendezvous;
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  rendezvous.endpoints = own.endpoints_to(id.addresses());
  rendezvous.secret = Secret(id.secret);
  rendezvous.advice =
      "the process that made the unique id must still run and be reachable from here "
      "(ANYCCL_SOCKET_IFNAME there chooses its addresses), and an id serves one group only";
  return join_at(rendezvous, mine, deadline);
}

Result<Group> join_at(const RendezvousAddress& rendezvous, const Hello& mine, Deadline deadline) {
  ANYCCL_CHECK(check_hello(mine));
  const auto begin = Deadline::Clock::now();
  ANYCCL_TRY(const Connection root, reach_root(rendezvous, mine, deadline));
  const auto waited = Deadline::Clock::now() - begin;
  ANYCCL_CHECK(send_hello(root, mine, deadline,
                          std::chrono::duration_cast<std::chrono::milliseconds>(waited)));
  ANYCCL_TRY(const JoinReply reply, receive_reply(root, mine, deadline));
  if (reply.kind == Frame::failure) return read_failure(reply.payload);
  return read_group(reply.payload, rendezvous.secret, mine);
}

}  // namespace anyccl::bootstrap
