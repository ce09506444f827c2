#include "platform/bootstrap/gathering.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kHelloTime{20};
constexpr std::chrono::seconds kDeliveryTime{10};
constexpr std::chrono::seconds kDeliveryTimeWhenStopped{2};

std::vector<Lobby::Door> doors_of(const std::vector<UniqueFd>& listeners) {
  std::vector<Lobby::Door> doors;
  for (const UniqueFd& listener : listeners) doors.push_back({listener.get(), false});
  return doors;
}

// The members must hear which ranks are missing before they give up by themselves.
milliseconds without_margin(milliseconds patience) {
  return patience - std::min(patience / 8, milliseconds(500));
}

bool is_set(int event) {
  pollfd entry{event, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace

Gathering::Gathering(std::vector<UniqueFd> listeners, const Secret& secret, Trust trust,
                     int stop_event)
    : listeners_(std::move(listeners)),
      lobby_(doors_of(listeners_), secret, kToRoot, trust),
      stop_event_(stop_event) {}

void Gathering::run() {
  const Status verdict = gather();
  if (!verdict.ok()) log(LogLevel::info, "root server: {}", verdict.message());
  // Closed before anyone hears the verdict: who then meets again at this port meets the next
  // server.
  // Shut down first, because a forked child may hold copies of them.
  for (const UniqueFd& listener : listeners_) ::shutdown(listener.get(), SHUT_RDWR);
  listeners_.clear();
  deliver(verdict);
}

Status Gathering::gather() {
  std::vector<pollfd> entries;
  while (!roster_.complete()) {
    ANYCCL_CHECK(poll_once(entries));
    if (entries[0].revents != 0)
      return error(Code::aborted, "the root server was stopped before all ranks had joined");
    const std::span<const pollfd> rest = std::span(entries).subspan(1);
    const std::size_t members = members_.size();
    ANYCCL_CHECK(lobby_.progress(rest.subspan(members)));
    ANYCCL_CHECK(read_from_members(rest.first(members)));
    admit_guests();
    ANYCCL_CHECK(check_patience());
  }
  return {};
}

Status Gathering::poll_once(std::vector<pollfd>& entries) {
  entries.assign(1, {stop_event_, POLLIN, 0});
  for (const Member& m : members_) entries.push_back({m.socket.get(), POLLIN, 0});
  lobby_.append_wanted(entries);
  if (::poll(entries.data(), entries.size(), poll_ms()) >= 0) return {};
  if (errno != EINTR) return system_error(errno, "root server: poll");
  for (pollfd& entry : entries) entry.revents = 0;
  return {};
}

int Gathering::poll_ms() const {
  int wait = lobby_.poll_ms(1000);
  for (const Member& m : members_) wait = (m.joined ? m.patience : m.hello_due).poll_ms(wait);
  return wait;
}

void Gathering::admit_guests() {
  for (Connection& guest : lobby_.take_guests()) {
    Member member;
    member.socket = std::move(guest.socket);
    member.session = guest.session;
    member.rank = guest.from;
    member.in.expect(sizeof(FrameHeader) + sizeof(HelloFrame));
    member.hello_due = Deadline::in(kHelloTime);
    members_.push_back(std::move(member));
  }
}

Status Gathering::read_from_members(std::span<const pollfd> entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Member& m = members_[i];
    if (entries[i].revents != 0 && m.joined)
      return error(Code::remote_error, "rank {} left before all ranks had joined", m.rank);
    if (entries[i].revents != 0) ANYCCL_CHECK(read_hello(m));
    if (!m.joined && m.hello_due.passed()) m.socket.reset();
  }
  std::erase_if(members_, [](const Member& m) { return !m.socket; });
  return {};
}

/// A connection that breaks before the hello is there is forgotten: the rank tries again.
Status Gathering::read_hello(Member& m) {
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
  m.joined = true;
  if (frame.patience_ms != kForever) {
    const milliseconds patience(frame.patience_ms);
    m.patience = Deadline::in(without_margin(patience));
    m.patience_s = std::chrono::duration<double>(patience).count();
  }
  return roster_.add(frame.hello);
}

Status Gathering::check_patience() const {
  if (roster_.complete()) return {};
  for (const Member& m : members_)
    if (m.joined && m.patience.passed()) return roster_.incomplete(m.patience_s);
  return {};
}

Result<std::vector<std::byte>> Gathering::group_payload() const {
  GroupHead head;
  ANYCCL_CHECK(random_bytes(head.salt));
  const std::vector<Hello> table = roster_.table();
  std::vector<std::byte> payload;
  for (const Bytes part : {Bytes(bytes_of(head)), Bytes(std::as_bytes(std::span(table)))})
    payload.insert(payload.end(), part.begin(), part.end());
  return payload;
}

void Gathering::deliver(const Status& verdict) {
  Result<std::vector<std::byte>> group = verdict.ok() ? group_payload() : verdict;
  const Frame kind = group.ok() ? Frame::table : Frame::failure;
  const auto payload = std::make_shared<const std::vector<std::byte>>(
      group.ok() ? *std::move(group) : failure_payload(group.status()));
  for (Member& m : members_)
    if (!prepare(m, kind, payload).ok()) m.socket.reset();
  flush_members();
}

Status Gathering::prepare(Member& m, Frame kind,
                          const std::shared_ptr<const std::vector<std::byte>>& payload) {
  ANYCCL_TRY(const FrameHeader header, seal(m.session, kind, *payload));
  m.out.put(bytes_of(header));
  m.out.put_shared(payload);
  return {};
}

void Gathering::flush_members() {
  Deadline deadline = Deadline::in(kDeliveryTime);
  bool stopped = false;
  std::vector<pollfd> entries;
  for (;;) {
    std::erase_if(members_, [](Member& m) {
      return !m.socket || !m.out.flush(m.socket.get()).ok() || m.out.empty();
    });
    if (members_.empty() || deadline.passed()) return;
    if (!stopped && is_set(stop_event_)) {
      stopped = true;
      deadline = Deadline::in(kDeliveryTimeWhenStopped);
    }
    entries.clear();
    if (!stopped) entries.push_back({stop_event_, POLLIN, 0});
    for (const Member& m : members_) entries.push_back({m.socket.get(), POLLOUT, 0});
    ::poll(entries.data(), entries.size(), deadline.poll_ms());
  }
}

}  // namespace anyccl
