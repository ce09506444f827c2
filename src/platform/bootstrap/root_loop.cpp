#include "platform/bootstrap/root_loop.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/table.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kHelloTime{20};
constexpr std::chrono::seconds kDeliveryTime{10};
constexpr std::chrono::seconds kTimeToStop{2};

std::vector<Acceptor::Listener> listeners_of(const std::vector<UniqueFd>& listeners) {
  std::vector<Acceptor::Listener> entries;
  entries.reserve(listeners.size());
  for (const UniqueFd& listener : listeners) entries.push_back({listener.get(), false});
  return entries;
}

// The members must hear which ranks are missing before they give up by themselves.
milliseconds without_margin(milliseconds timeout) {
  return timeout - std::min(timeout / 4, milliseconds(500));
}

}  // namespace

RootLoop::RootLoop(std::vector<UniqueFd> listeners, const Secret& secret, Trust trust,
                   int stop_event)
    : listeners_(std::move(listeners)),
      acceptor_(listeners_of(listeners_), secret, kToRoot, trust),
      trust_(trust),
      stop_event_(stop_event) {}

void RootLoop::run() {
  while (!finished()) {
    if (const Status problem = step(); !problem.ok()) {
      if (answer_.payload) break;
      log(LogSubsystem::net, "root server: {}", problem.message());
      if (!settle(problem).ok()) break;
    }
    flush_members();
  }
  close_listeners();
}

bool RootLoop::finished() const {
  const bool ending = stopped_ || answer_.kind == Frame::table;
  if (!answer_.payload || !ending) return false;
  const bool all_told = members_.empty() && (!waits_for_late_ || told_.size() >= table_.size());
  return all_told || end_.passed();
}

void RootLoop::stop() {
  std::uint64_t how = kStopNow;  // the event is ready, so it can be read
  waits_for_late_ = ::read(stop_event_, &how, sizeof how) == sizeof how && how == kStopWhenTold;
  stopped_ = true;
  end_ = Deadline::in(kTimeToStop);
}

Status RootLoop::step() {
  std::vector<pollfd> entries;
  ANYCCL_CHECK(poll_once(entries));
  const std::span<const pollfd> rest = std::span(entries).subspan(1);
  const std::size_t members = members_.size();
  ANYCCL_CHECK(let_in(rest.subspan(members)));
  warn_of_refused();
  ANYCCL_CHECK(read_from_members(rest.first(members)));
  admit_authenticated();
  if (entries[0].revents != 0) stop();
  if (answer_.payload) return {};
  if (table_.complete()) return settle({});
  if (stopped_)
    return error(Code::aborted, "the root server was stopped before all ranks had joined");
  return check_timeouts();
}

Status RootLoop::poll_once(std::vector<pollfd>& entries) {
  entries.push_back({stopped_ ? -1 : stop_event_, POLLIN, 0});
  for (const Member& m : members_)
    entries.push_back({m.socket.get(), m.out.empty() ? short{POLLIN} : short{POLLOUT}, 0});
  acceptor_.append_wanted(entries);
  if (::poll(entries.data(), entries.size(), poll_ms()) >= 0) return {};
  if (errno != EINTR) return system_error(errno, "root server: poll");
  for (pollfd& entry : entries) entry.revents = 0;
  return {};
}

int RootLoop::poll_ms() const {
  int wait = acceptor_.poll_ms(end_.poll_ms());
  for (const Member& m : members_) wait = (m.joined ? m.timeout : m.hello_due).poll_ms(wait);
  return wait;
}

void RootLoop::admit_authenticated() {
  for (Connection& connection : acceptor_.take_authenticated()) {
    Member member;
    member.socket = std::move(connection.socket);
    member.session = connection.session;
    member.rank = connection.from;
    member.in.expect(sizeof(FrameHeader) + sizeof(HelloFrame));
    member.hello_due = Deadline::in(kHelloTime);
    members_.push_back(std::move(member));
  }
}

Status RootLoop::read_from_members(std::span<const pollfd> entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Member& m = members_[i];
    const bool ready = entries[i].revents != 0;
    if (ready && m.joined && !answer_.payload)
      return error(Code::remote_error, "rank {} left before all ranks had joined", m.rank);
    if (ready && !m.joined) ANYCCL_CHECK(read_hello(m));
    if (!m.joined && m.hello_due.passed()) m.socket.reset();
  }
  std::erase_if(members_, [](const Member& m) { return !m.socket; });
  return {};
}

/// A connection that breaks before the hello is there is forgotten: the rank tries again.
Status RootLoop::read_hello(Member& m) {
  if (!m.in.fill(m.socket.get()).ok()) {
    m.socket.reset();
    return {};
  }
  if (!m.in.full()) return {};
  const auto header = read_as<FrameHeader>(m.in.bytes());
  const Bytes payload = m.in.bytes().subspan(sizeof(FrameHeader));
  ANYCCL_TRY(const bool sealed, is_sealed(m.session, header, payload));
  const auto frame = read_as<HelloFrame>(payload);
  if (!sealed || header.kind != static_cast<std::uint32_t>(Frame::hello) ||
      frame.hello.rank != m.rank) {
    m.socket.reset();
    return {};
  }
  return join(m, frame);
}

Status RootLoop::join(Member& m, const HelloFrame& frame) {
  m.joined = true;
  if (answer_.payload) return prepare(m);
  if (frame.timeout_ms != kForever) {
    const milliseconds timeout(frame.timeout_ms);
    m.timeout = Deadline::in(without_margin(timeout));
    m.timeout_s = std::chrono::duration<double>(timeout + milliseconds(frame.waited_ms)).count();
  }
  return table_.add(frame.hello);
}

Status RootLoop::check_timeouts() const {
  for (const Member& m : members_)
    if (m.joined && m.timeout.passed()) {
      const Status incomplete = table_.incomplete(m.timeout_s);
      return error(incomplete.code(), "{}{}", incomplete.message(), hint());
    }
  return {};
}

/// Why ranks may be missing.
std::string RootLoop::hint() const {
  if (const std::string refusals = acceptor_.refusals(); !refusals.empty())
    return fmt::format("; {}: is ANYCCL_SECRET the same everywhere?", refusals);
  if (trust_ == Trust::same_user)
    return "; without ANYCCL_SECRET only processes of this user on this host can join: ranks on "
           "other hosts need the same 32 hex digits in it";
  return "";
}

/// Without a descriptor there is no group. Once everyone is told why, those that come later have been
/// turned away, and descriptors become free.
Status RootLoop::let_in(std::span<const pollfd> entries) {
  const Status why = acceptor_.progress(entries);
  if (why.ok() || (answer_.payload && why.code() == Code::system_error)) return {};
  return error(why.code(),
               "{} of {} ranks joined, and the root server (pid {}) can take no more: {}",
               table_.joined(), table_.size(), ::getpid(), why.message());
}

/// At once: the ranks that are here may wait for long.
void RootLoop::warn_of_refused() {
  if (warned_ || acceptor_.last_refused().empty()) return;
  warned_ = true;
  log(LogLevel::warn,
      "a process at {} wanted to join and was refused, as it knows another secret: it belongs to "
      "another job, or its ANYCCL_SECRET differs",
      acceptor_.last_refused());
}

Status RootLoop::settle(const Status& outcome) {
  Result<std::vector<std::byte>> group = outcome.ok() ? group_payload() : outcome;
  answer_.kind = group.ok() ? Frame::table : Frame::failure;
  answer_.payload = std::make_shared<const std::vector<std::byte>>(
      group.ok() ? *std::move(group) : failure_payload(group.status()));
  ANYCCL_TRY(answer_.digest, digest_of(*answer_.payload));
  if (answer_.kind == Frame::table) {
    // Before anyone hears it: who then meets again at this port must not meet this server.
    close_listeners();
    std::erase_if(members_, [](const Member& m) { return !m.joined; });
    if (!stopped_) end_ = Deadline::in(kDeliveryTime);
  }
  for (Member& m : members_) {
    m.timeout = Deadline::never();
    if (m.joined && !prepare(m).ok()) m.socket.reset();
  }
  return {};
}

Result<std::vector<std::byte>> RootLoop::group_payload() const {
  GroupHead head;
  ANYCCL_CHECK(random_bytes(head.salt));
  const std::vector<std::byte> table = encode_table(table_.hellos());
  std::vector<std::byte> payload;
  for (const Bytes part : {Bytes(bytes_of(head)), Bytes(table)})
    payload.insert(payload.end(), part.begin(), part.end());
  return payload;
}

Status RootLoop::prepare(Member& m) {
  ANYCCL_TRY(const FrameHeader header, seal(m.session, answer_.kind, answer_.digest));
  m.out.put(bytes_of(header));
  m.out.put_shared(answer_.payload);
  return {};
}

void RootLoop::flush_members() {
  if (!answer_.payload) return;
  std::erase_if(members_, [this](Member& m) {
    const bool lost = !m.socket || !m.out.flush(m.socket.get()).ok();
    const bool told = !lost && m.joined && m.out.empty();
    if (told) told_.insert(m.rank);
    return lost || told;
  });
}

void RootLoop::close_listeners() {
  acceptor_.close();
  // A forked child may hold copies of them, so closing is not enough.
  for (const UniqueFd& listener : listeners_) ::shutdown(listener.get(), SHUT_RDWR);
  listeners_.clear();
}

}  // namespace anyccl::bootstrap
