#include "platform/bootstrap/rendezvous/group_root.hpp"

#include <unistd.h>

#include <algorithm>
#include <ranges>

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/group/table.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kHelloTime{20};
constexpr std::chrono::seconds kDeliveryTime{10};
constexpr std::chrono::seconds kTimeToStop{2};

// The members must hear which ranks are missing before they give up by themselves.
milliseconds without_margin(milliseconds timeout) {
  return timeout - std::min(timeout / 4, milliseconds(500));
}

}  // namespace

GroupRoot::~GroupRoot() {
  for (const auto& [socket, member] : waiting_) sockets_.forget(socket);
}

void GroupRoot::admit(Connection connection) {
  Member member;
  member.socket = std::move(connection.socket);
  member.session = connection.session;
  member.rank = connection.from;
  member.hello.expect(sizeof(FrameHeader) + sizeof(HelloFrame));
  member.hello_due = Deadline::in(kHelloTime);
  arriving_.push_back(std::move(member));
}

void GroupRoot::append_wanted(std::vector<pollfd>& entries) const {
  for (const Member& m : arriving_) entries.push_back({m.socket.get(), POLLIN, 0});
}

int GroupRoot::poll_ms(int most) const {
  int wait = first_timeout_.poll_ms(end_.poll_ms(most));
  for (const Member& m : arriving_) wait = m.hello_due.poll_ms(wait);
  return wait;
}

void GroupRoot::progress(std::span<const pollfd> entries, std::span<const int> ready) {
  if (const Status problem = step(entries, ready); !problem.ok()) fail(problem);
}

void GroupRoot::fail(const Status& why) {
  log(LogSubsystem::net, "root server: {}", why.message());
  if (answer_.payload || !settle(why).ok()) broken_ = true;
}

bool GroupRoot::finished() const {
  const bool ending = stopped_ || !is_open();
  if (!answer_.payload || !ending) return broken_;
  const bool all_told =
      arriving_.empty() && waiting_.empty() && (!waits_for_late_ || told_.size() >= table_.size());
  return all_told || end_.passed() || broken_;
}

void GroupRoot::stop(bool waits_for_late) {
  if (stopped_) return;
  waits_for_late_ = waits_for_late;
  stopped_ = true;
  end_ = Deadline::in(kTimeToStop);
}

Status GroupRoot::step(std::span<const pollfd> entries, std::span<const int> ready) {
  ANYCCL_CHECK(read_from_arriving(entries));
  ANYCCL_CHECK(serve_waiting(ready));
  if (answer_.payload) return {};
  if (is_complete()) return settle({});
  if (stopped_)
    return error(Code::aborted, "the root server was stopped before all ranks had joined");
  return check_timeouts();
}

Status GroupRoot::read_from_arriving(std::span<const pollfd> entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Member& m = arriving_[i];
    if (entries[i].revents != 0) ANYCCL_CHECK(read_hello(m));
    if (m.hello_due.passed()) m.socket.reset();
  }
  std::erase_if(arriving_, [](const Member& m) { return !m.socket; });
  return {};
}

/// Those that wait have news, have left, or can take more of the answer.
Status GroupRoot::serve_waiting(std::span<const int> ready) {
  for (const int socket : ready) {
    if (!waiting_.contains(socket)) continue;  // of another group
    if (answer_.payload) {
      tell(socket);
      continue;
    }
    ANYCCL_CHECK(hear(waiting_.at(socket)));
  }
  return {};
}

Status GroupRoot::hear(Member& m) {
  while (const std::optional<Report> report = m.read_report()) {
    if (report->left)
      return error(Code::remote_error, "rank {} left before all ranks had joined", *report->left);
    for (const HelloFrame& frame : report->hellos) {
      ANYCCL_CHECK(add(frame));
      present_.insert(frame.hello.rank);
    }
  }
  return {};
}

/// A connection that breaks before the hello is there is forgotten: the rank tries again.
Status GroupRoot::read_hello(Member& m) {
  if (!m.hello.fill(m.socket.get()).ok()) {
    m.socket.reset();
    return {};
  }
  if (!m.hello.full()) return {};
  const auto header = read_as<FrameHeader>(m.hello.bytes());
  const Bytes payload = m.hello.bytes().subspan(sizeof(FrameHeader));
  ANYCCL_TRY(const bool sealed, is_sealed(m.session, header, payload));
  const auto frame = read_as<HelloFrame>(payload);
  if (!sealed || header.kind != static_cast<std::uint32_t>(Frame::hello) ||
      frame.hello.rank != m.rank) {
    m.socket.reset();
    return {};
  }
  return join(std::move(m), frame);
}

Status GroupRoot::join(Member m, const HelloFrame& frame) {
  const int socket = m.socket.get();
  Member& waiting = waiting_.insert_or_assign(socket, std::move(m)).first->second;
  if (answer_.payload) {
    ANYCCL_CHECK(waiting.put(answer_));
    tell(socket);
    return {};
  }
  ANYCCL_CHECK(sockets_.watch(socket, POLLIN));
  ANYCCL_CHECK(add(frame));
  if (tree_.is_large(frame.hello.size)) return place(frame, socket);
  present_.insert(frame.hello.rank);
  return {};
}

/// A rank that has joined comes again if it has lost the leader that spoke for it, or told it.
Status GroupRoot::add(const HelloFrame& frame) {
  note_timeout(frame);
  return is_known(frame.hello) ? Status() : table_.add(frame.hello);
}

bool GroupRoot::is_known(const Hello& hello) const {
  const Hello* const known = table_.find(hello.rank);
  return known != nullptr && same_call(*known, hello);
}

/// The rank that tells the next leader; absent: it is told here.
std::optional<std::uint32_t> GroupRoot::take_next_teller() {
  const std::optional<std::uint32_t> number = tree_.teller_of(leaders_);
  if (number && *number >= tellers_.size()) return std::nullopt;
  ++leaders_;
  return number ? std::optional(tellers_[*number]) : std::nullopt;
}

/// Tells a leader where it hears the answer.
Status GroupRoot::place(const HelloFrame& frame, int socket) {
  const std::uint32_t rank = frame.hello.rank;
  const bool again = frame.visit == static_cast<std::uint32_t>(Visit::again);
  const std::optional<std::uint32_t> teller = again ? std::nullopt : take_next_teller();
  const bool tells =
      !again && frame.tells != 0 && tree_.may_need(tellers_.size(), frame.hello.size);
  if (tells) tellers_.push_back(rank);
  if (teller)
    teller_of_[rank] = *teller;
  else
    present_.insert(rank);
  ANYCCL_CHECK(send_place(socket, {tells ? 1U : 0U}, teller ? table_.find(*teller) : nullptr));
  if (teller) drop(socket);
  return {};
}

/// `teller`: null: the leader hears the answer here.
Status GroupRoot::send_place(int socket, const Place& place, const Hello* teller) {
  std::vector<std::byte> payload(bytes_of(place).begin(), bytes_of(place).end());
  if (teller != nullptr)
    payload.insert(payload.end(), bytes_of(*teller).begin(), bytes_of(*teller).end());
  Member& m = waiting_.at(socket);
  ANYCCL_TRY(const FrameHeader header, seal(m.session, Frame::place, payload));
  m.out.put(bytes_of(header));
  m.out.put(payload);
  // These are the first bytes to it, and few: they fit the socket's buffer, or it is broken.
  if (m.out.flush(socket).ok() && m.out.empty()) return {};
  return error(Code::remote_error, "rank {} left before all ranks had joined", m.rank);
}

void GroupRoot::note_timeout(const HelloFrame& frame) {
  if (frame.timeout_ms == kForever) return;
  const milliseconds timeout(frame.timeout_ms);
  const Deadline due = Deadline::in(without_margin(timeout));
  if (!(due < first_timeout_)) return;
  first_timeout_ = due;
  first_timeout_s_ = std::chrono::duration<double>(timeout + milliseconds(frame.waited_ms)).count();
}

Status GroupRoot::check_timeouts() const {
  if (!first_timeout_.passed()) return {};
  if (table_.complete()) return lost_rank_error();
  const Status incomplete = table_.incomplete_error(first_timeout_s_);
  return error(incomplete.code(), "{}{}", incomplete.message(), hint());
}

/// All have joined, but not all wait.
Status GroupRoot::lost_rank_error() const {
  std::uint32_t rank = 0;
  while (present_.contains(rank)) ++rank;
  const auto teller = teller_of_.find(rank);
  return error(Code::timeout,
               "{} joined, and did not reach rank {}, which tells it the rest, in time",
               describe(*table_.find(rank)), teller == teller_of_.end() ? 0 : teller->second);
}

/// Why ranks may be missing.
std::string GroupRoot::hint() const {
  if (const std::string refusals = acceptor_.refusals(); !refusals.empty())
    return fmt::format("; {}: is ANYCCL_SECRET the same everywhere?", refusals);
  if (trust_ == Trust::same_user)
    return "; without ANYCCL_SECRET only processes of this user on this host can join: ranks on "
           "other hosts need the same 32 hex digits in it";
  return "";
}

/// Without a descriptor there is no group. Once everyone is told why, those that come later have
/// been turned away, and descriptors become free.
void GroupRoot::fail_to_accept(const Status& why) {
  if (answer_.payload && why.code() == Code::system_error) return;
  fail(error(why.code(), "{} of {} ranks joined, and the root server (pid {}) can take no more: {}",
             table_.joined(), table_.size(), ::getpid(), why.message()));
}

Status GroupRoot::settle(const Status& outcome) {
  Result<std::vector<std::byte>> group = outcome.ok() ? group_payload() : outcome;
  const Frame kind = group.ok() ? Frame::table : Frame::failure;
  ANYCCL_TRY(answer_, FinalReply::make(
                          kind, group.ok() ? *std::move(group) : failure_payload(group.status())));
  if (answer_.kind == Frame::table) {
    when_complete_();
    arriving_.clear();
    if (!stopped_) end_ = Deadline::in(kDeliveryTime);
  }
  first_timeout_ = Deadline::never();
  told_ = present_;  // by those that tell them; the others hear it here
  std::vector<int> sockets;
  for (auto& [socket, m] : waiting_) {
    ANYCCL_CHECK(m.put(answer_));
    sockets.push_back(socket);
  }
  for (const int socket : sockets) tell(socket);
  return {};
}

Result<std::vector<std::byte>> GroupRoot::group_payload() const {
  GroupHead head;
  ANYCCL_CHECK(random_bytes(head.salt));
  const std::vector<std::byte> table = encode_table(table_.hellos());
  std::vector<std::byte> payload;
  for (const Bytes part : {Bytes(bytes_of(head)), Bytes(table)})
    payload.insert(payload.end(), part.begin(), part.end());
  return payload;
}

/// Sends the answer as far as its socket takes it now.
void GroupRoot::tell(int socket) {
  Member& m = waiting_.at(socket);
  const bool may_report = tree_.is_large(static_cast<std::uint32_t>(table_.size()));
  std::vector<HelloFrame> late;
  const bool told = m.send_rest(may_report, late);
  for (const HelloFrame& frame : late)  // the leader that says so tells them
    if (frame.hello.size == table_.size()) told_.insert(frame.hello.rank);
  if (!told && sockets_.watch(socket, static_cast<std::uint32_t>(m.events())).ok()) return;
  if (m.out.empty()) told_.insert(m.rank);
  drop(socket);
}

void GroupRoot::drop(int socket) {
  sockets_.forget(socket);
  waiting_.erase(socket);
}

}  // namespace anyccl::bootstrap
