#include "platform/bootstrap/join.hpp"

#include <poll.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/frame.hpp"
#include "platform/bootstrap/interfaces.hpp"
#include "platform/bootstrap/relay.hpp"
#include "platform/bootstrap/table.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kRoot = "the root server";

/// How long a rank tries to reach the one that is to tell it, before it goes back to the root server.
constexpr milliseconds kReachTime{1000};
/// Between visits of a rank that is to come again.
constexpr milliseconds kLongestPause{1000};
/// How long a rank tells others the answer.
constexpr milliseconds kTellingTime{10000};

/// One rank's way to the answer.
struct Joiner {
  const RendezvousAddress& rendezvous;
  const Hello& mine;
  Deadline deadline;
  std::optional<Relay> relay = {};  ///< If it tells others.
};

/// Where a rank hears the answer.
struct Source {
  Dial::Target target;
  std::string name;
  std::string advice;
};

Result<Connection> reach(const Joiner& joiner, const Source& source, Deadline deadline) {
  Dial dial(joiner.rendezvous.secret, source.target);
  std::vector<pollfd> entries;
  for (;;) {
    if (Status s = dial.advance(); !s.ok())
      return error(s.code(), "{} cannot join: {}", describe(joiner.mine), s.message());
    if (dial.done()) return dial.take();
    if (deadline.passed())
      return error(Code::timeout, "{} could not reach {} in time: {}; {}", describe(joiner.mine),
                   source.name, dial.problems(), source.advice);
    entries.clear();
    dial.append_wanted(entries);
    ::poll(entries.data(), entries.size(), deadline.poll_ms(dial.poll_ms(1000)));
  }
}

Result<Source> root_of(const Joiner& joiner) {
  const RendezvousAddress& rendezvous = joiner.rendezvous;
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  return Source{{rendezvous.endpoints, joiner.mine.rank, kToRoot, rendezvous.trust,
                 own.missing_family(rendezvous.endpoints)},
                std::string(kRoot),
                std::string(rendezvous.advice)};
}

Result<Source> source_at(const Joiner& joiner, const Hello& sender) {
  const Trust trust = joiner.rendezvous.trust;
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  std::vector<Address> addresses = addresses_of(sender);
  if (!same_network(joiner.mine, sender)) std::erase_if(addresses, is_loopback);
  std::vector<Endpoint> endpoints;
  if (trust != Trust::same_user) endpoints = own.endpoints_to(addresses);
  if (trust == Trust::same_user || same_host(joiner.mine, sender))
    endpoints.insert(endpoints.begin(), Endpoint{unix_name_of(sender), {}});
  return Source{{endpoints, joiner.mine.rank, kToRelay, trust, own.missing_family(endpoints)},
                describe(sender),
                "it passes on the root server's answer"};
}

Status send_frame(const Connection& to, Frame kind, Bytes payload, const Source& source,
                  Deadline deadline) {
  ANYCCL_TRY(const FrameHeader header, seal(to.session, kind, payload));
  ANYCCL_CHECK(send_all(to.socket.get(), bytes_of(header), deadline, source.name));
  return send_all(to.socket.get(), payload, deadline, source.name);
}

HelloFrame hello_frame(const Joiner& joiner, milliseconds waited, Visit visit) {
  HelloFrame frame;
  frame.hello = joiner.mine;
  frame.waited_ms = static_cast<std::uint32_t>(waited.count());
  frame.timeout_ms =
      joiner.deadline.is_never()
          ? kForever
          : static_cast<std::uint32_t>(joiner.deadline.poll_ms(std::numeric_limits<int>::max()));
  frame.tells = joiner.relay ? 1 : 0;
  frame.visit = static_cast<std::uint32_t>(visit);
  return frame;
}

std::size_t largest_payload(Frame kind, const Hello& mine) {
  if (kind == Frame::table) return sizeof(GroupHead) + mine.size * kMostEntryBytes;
  if (kind == Frame::failure) return sizeof(FailureHead) + kFailureText;
  return kind == Frame::sender ? sizeof(Hello) : 0;
}

bool is_answer(Frame kind) {
  return kind == Frame::table || kind == Frame::failure;
}

struct JoinReply {
  Frame kind = Frame::failure;
  std::vector<std::byte> payload;
};

Result<JoinReply> receive_reply(const Connection& from, const Source& source, const Hello& mine,
                                Deadline deadline) {
  const Status malformed =
      error(Code::remote_error, "{} answered in a form that cannot be understood", source.name);
  FrameHeader header;
  ANYCCL_CHECK(recv_all(from.socket.get(), std::as_writable_bytes(std::span(&header, 1)), deadline,
                        source.name));
  JoinReply reply{static_cast<Frame>(header.kind), {}};
  if (reply.kind < Frame::table || reply.kind > Frame::later) return malformed;
  if (header.bytes > largest_payload(reply.kind, mine)) return malformed;
  reply.payload.resize(header.bytes);
  ANYCCL_CHECK(recv_all(from.socket.get(), reply.payload, deadline, source.name));
  ANYCCL_TRY(const bool sealed, is_sealed(from.session, header, reply.payload));
  if (!sealed) return malformed;
  return reply;
}

/// Polls once, the relay and perhaps `socket`. Result: whether `socket` is readable.
Result<bool> serve_once(Relay& relay, int socket, Deadline deadline) {
  std::vector<pollfd> entries{{socket, POLLIN, 0}};
  relay.append_wanted(entries);
  if (::poll(entries.data(), entries.size(), relay.poll_ms(deadline.poll_ms(1000))) < 0)
    for (pollfd& entry : entries) entry.revents = 0;
  if (const Status s = relay.progress(std::span(entries).subspan(1)); !s.ok())
    return error(s.code(),
                 "cannot let in the ranks that wait for the root server's answer here: {}",
                 s.message());
  return entries[0].revents != 0;
}

/// Until the answer comes: lets in those that this rank tells, and sends the news of them.
Status serve_until_reply(Joiner& joiner, const Connection& from, const Source& source) {
  if (!joiner.relay) return {};
  for (;;) {
    ANYCCL_TRY(const bool readable, serve_once(*joiner.relay, from.socket.get(), joiner.deadline));
    for (const News& news : joiner.relay->take_news())
      ANYCCL_CHECK(send_frame(from, Frame::news, bytes_of(news), source, joiner.deadline));
    if (readable) return {};
    if (joiner.deadline.passed())
      return error(Code::timeout, "no answer from {} in time", source.name);
  }
}

Result<JoinReply> await_reply(Joiner& joiner, const Connection& from, const Source& source) {
  ANYCCL_CHECK(serve_until_reply(joiner, from, source));
  return receive_reply(from, source, joiner.mine, joiner.deadline);
}

/// `reach_by`: when to give up as long as the root server does not answer at all.
Result<JoinReply> ask_root(Joiner& joiner, Visit visit, Deadline reach_by) {
  const auto begin = Deadline::Clock::now();
  ANYCCL_TRY(const Source source, root_of(joiner));
  ANYCCL_TRY(const Connection root, reach(joiner, source, reach_by));
  const auto waited = std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - begin);
  ANYCCL_CHECK(send_frame(root, Frame::hello, bytes_of(hello_frame(joiner, waited, visit)), source,
                          joiner.deadline));
  return await_reply(joiner, root, source);
}

/// Comes again, less and less often, as long as the root server says so.
Result<JoinReply> ask_root_until_it_knows(Joiner& joiner) {
  ANYCCL_TRY(JoinReply reply, ask_root(joiner, Visit::first, joiner.deadline));
  for (milliseconds pause{20}; reply.kind == Frame::later && !joiner.deadline.passed();
       pause = std::min(2 * pause, kLongestPause)) {
    ::poll(nullptr, 0, joiner.deadline.poll_ms(static_cast<int>(pause.count())));
    ANYCCL_TRY(reply, ask_root(joiner, Visit::again, joiner.deadline));
  }
  return reply;
}

/// The rank that the root server says has the answer.
Result<Hello> read_sender(const Joiner& joiner, const JoinReply& reply) {
  const Hello& mine = joiner.mine;
  if (reply.payload.size() == sizeof(Hello)) {
    const auto sender = read_as<Hello>(reply.payload);
    ANYCCL_CHECK(check_hello(sender));
    if (sender.rank == joiner.rendezvous.tree.sender_of(mine.rank) && sender.size == mine.size)
      return sender;
  }
  return error(Code::remote_error, "the root server sent {} to a rank that cannot tell it anything",
               describe(mine));
}

Result<JoinReply> ask_sender(Joiner& joiner, const Source& sender) {
  ANYCCL_TRY(const Connection connection,
             reach(joiner, sender, std::min(joiner.deadline, Deadline::in(kReachTime))));
  ANYCCL_CHECK(send_frame(connection, Frame::news, bytes_of(News{joiner.mine.rank, 0}), sender,
                          joiner.deadline));
  return await_reply(joiner, connection, sender);
}

Result<JoinReply> ask(Joiner& joiner) {
  ANYCCL_TRY(JoinReply reply, ask_root_until_it_knows(joiner));
  if (reply.kind != Frame::sender) return reply;
  ANYCCL_TRY(const Hello sender, read_sender(joiner, reply));
  ANYCCL_TRY(const Source source, source_at(joiner, sender));
  Result<JoinReply> told = ask_sender(joiner, source);
  if (told.ok() || joiner.deadline.passed()) return told;
  // It cannot be reached, or has an error and is gone: the root server knows more.
  log(LogSubsystem::net, "{}; this rank goes back to the root server", told.status().message());
  Result<JoinReply> direct =
      ask_root(joiner, Visit::cannot_reach, std::min(joiner.deadline, Deadline::in(kReachTime)));
  return direct.ok() ? direct : told;
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

/// Tells the ranks that wait here.
Status pass_on(Joiner& joiner, Frame kind, std::vector<std::byte> payload) {
  if (!joiner.relay) return {};
  ANYCCL_TRY(FinalReply reply, FinalReply::make(kind, std::move(payload)));
  ANYCCL_CHECK(joiner.relay->answer(std::move(reply)));
  const Deadline due = Deadline::in(kTellingTime);
  while (!joiner.relay->all_told() && !due.passed())
    ANYCCL_CHECK(serve_once(*joiner.relay, -1, due).status());
  return {};
}

/// Who waits for this rank hears of its error, too; `why` is what counts here.
Status fail(Joiner& joiner, Status why) {
  if (!pass_on(joiner, Frame::failure, failure_payload(why)).ok())
    log(LogSubsystem::net, "some ranks were not told: {}", why.message());
  return why;
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
  Joiner joiner{rendezvous, mine, deadline};
  const RelayTree::Ranks receivers = rendezvous.tree.receivers_of(mine.rank, mine.size);
  if (listeners != nullptr && !receivers.empty())
    joiner.relay.emplace(*listeners, rendezvous.secret, rendezvous.trust, receivers);
  Result<JoinReply> reply = ask(joiner);
  if (!reply.ok()) return fail(joiner, reply.status());
  if (reply->kind == Frame::failure) return fail(joiner, read_failure(reply->payload));
  if (!is_answer(reply->kind))
    return fail(joiner,
                error(Code::timeout, "the root server did not answer {} in time", describe(mine)));
  ANYCCL_CHECK(pass_on(joiner, Frame::table, reply->payload));
  return read_group(reply->payload, rendezvous.secret, mine);
}

}  // namespace anyccl::bootstrap
