#include "platform/bootstrap/rendezvous/uplink.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

/// How long a leader tries to reach the one that is to tell it, before it goes back to the root
/// server, and then that one: both are there, or gone for good.
constexpr milliseconds kReachTime{1000};
/// How long a leader that goes back tries to reach a root server that it has not lost: with
/// thousands of ranks at its door, their handshakes take seconds.
constexpr milliseconds kReturnTime{10000};
/// At least so much is between two reports, so that hellos which come together go up together: the
/// others of a host start within milliseconds, and a frame for each costs each leader on the way up
/// a wakeup.
constexpr milliseconds kBetweenReports{2};

milliseconds since(Deadline::Clock::time_point then) {
  return std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - then);
}

/// As if it were said now.
HelloFrame aged(HelloFrame frame, milliseconds age) {
  const auto passed = static_cast<std::uint32_t>(age.count());
  frame.waited_ms += passed;
  if (frame.timeout_ms != kForever) frame.timeout_ms -= std::min(frame.timeout_ms, passed);
  return frame;
}

}  // namespace

Uplink::Uplink(const RendezvousAddress& rendezvous, const Attendance& attendance, bool can_tell)
    : rendezvous_(rendezvous),
      mine_(attendance.mine),
      can_tell_(can_tell),
      deadline_(attendance.deadline),
      begun_(attendance.begun),
      in_(largest_reply, mine_.size),
      lost_(attendance.lost) {
  known_.push_back({hello_frame(mine_, deadline_, since(begun_)), Clock::now()});
}

void Uplink::take_report(const Report& report) {
  for (const HelloFrame& frame : report.hellos) known_.push_back({frame, Clock::now()});
  if (report.left && !forget_unsent(*report.left)) left_.push_back(*report.left);
}

/// Until the server is there, a rank of which it has not heard may go, and come again, as if it had
/// never been here. Later it may be a leader that the server has sent here, and counts as one that
/// came. Result: whether it is such a rank.
bool Uplink::forget_unsent(std::uint32_t rank) {
  if (placed_) return false;
  const auto is_it = [rank](const Known& known) { return known.frame.hello.rank == rank; };
  const auto unsent = known_.begin() + static_cast<std::ptrdiff_t>(hellos_ever_sent_);
  if (std::any_of(known_.begin() + 1, unsent, is_it)) return false;
  const auto found = std::find_if(unsent, known_.end(), is_it);
  if (found == known_.end()) return false;
  known_.erase(found);
  return true;
}

void Uplink::append_wanted(std::vector<pollfd>& entries) const {
  if (dial_) return dial_->append_wanted(entries);
  const bool writes = !out_.empty();
  entries.push_back(
      {connection_.socket.get(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
}

int Uplink::poll_ms(int most) const {
  most = deadline_.poll_ms(most);
  if (dial_) return reach_by_.poll_ms(dial_->poll_ms(most));
  const bool has_more = hellos_sent_ < known_.size() || left_sent_ < left_.size();
  return reports_ && out_.empty() && has_more ? next_send_.poll_ms(most) : most;
}

Result<std::optional<FinalReply>> Uplink::progress() {
  Result<std::optional<FinalReply>> reply = step();
  if (reply.ok() || deadline_.passed()) return reply;
  if (visit_ == Visit::again) return lost_;
  if (at_root_ && dial_) return lost_.ok() ? reply : lost_;
  // The connection broke, or the leader cannot be reached: the root server knows more.
  lost_ = reply.status();
  log(LogSubsystem::net, "{}; this rank goes back to the root server", lost_.message());
  const milliseconds time = at_root_ ? kReachTime : kReturnTime;
  ANYCCL_CHECK(go_to_root(Visit::again, std::min(deadline_, Deadline::in(time))));
  return std::optional<FinalReply>();
}

Result<std::optional<FinalReply>> Uplink::step() {
  if (source_.name.empty()) ANYCCL_CHECK(begin());
  for (;;) {
    if (dial_) ANYCCL_CHECK(keep_dialing());
    if (dial_) return std::optional<FinalReply>();
    if (reports_) ANYCCL_CHECK(put_reports());
    ANYCCL_CHECK(out_.flush(connection_.socket.get(), source_.name));
    ANYCCL_TRY(std::optional<ReceivedFrame> frame,
               in_.next(connection_.socket.get(), connection_.session, source_.name));
    if (!frame && deadline_.passed())
      return error(Code::timeout, "no answer from {} in time", source_.name);
    if (!frame) return std::optional<FinalReply>();
    if (frame->kind != Frame::place) {
      if (frame->kind == Frame::failure && at_root_) report_the_rest();
      connection_.socket.reset();
      return std::optional(FinalReply::of(*std::move(frame)));
    }
    ANYCCL_CHECK(go_to_place(*frame));
  }
}

Status Uplink::begin() {
  const Deadline reach_by = lost_.ok() ? deadline_ : std::min(deadline_, Deadline::in(kReachTime));
  return go_to_root(Visit::first, reach_by);
}

Status Uplink::go_to_root(Visit visit, Deadline reach_by) {
  ANYCCL_TRY(Source root, root_source(rendezvous_, mine_));
  visit_ = visit;
  at_root_ = true;
  go_to(std::move(root), reach_by);
  return {};
}

/// Where the root server says.
Status Uplink::go_to_place(const ReceivedFrame& frame) {
  const Bytes payload = frame.payload;
  const bool is_here = payload.size() == sizeof(Place);
  if (!at_root_ || (!is_here && payload.size() != sizeof(Place) + sizeof(Hello)))
    return error(Code::remote_error, "{} answered in a form that cannot be understood",
                 source_.name);
  placed_ = true;
  tells_ = tells_ || read_as<Place>(payload).tells != 0;
  if (!is_here) return go_to_teller(read_as<Hello>(payload.subspan(sizeof(Place))));
  begin_reports(1);  // the server has heard this rank's
  return {};
}

Status Uplink::go_to_teller(const Hello& teller) {
  ANYCCL_CHECK(check_hello(teller));
  if (teller.rank == mine_.rank || teller.size != mine_.size)
    return error(Code::remote_error,
                 "the root server sent {} to a rank that cannot tell it anything", describe(mine_));
  ANYCCL_TRY(Source source, teller_source(rendezvous_, mine_, teller));
  at_root_ = false;
  go_to(std::move(source), std::min(deadline_, Deadline::in(kReachTime)));
  return {};
}

void Uplink::go_to(Source source, Deadline reach_by) {
  source_ = std::move(source);
  reach_by_ = reach_by;
  dial_.emplace(rendezvous_.secret, source_.target);
  connection_ = {};
  in_ = FrameReader(largest_reply, mine_.size);
  out_ = {};
  reports_ = false;
}

Status Uplink::keep_dialing() {
  if (const Status s = dial_->advance(); !s.ok())
    return error(s.code(), "{} cannot join: {}", describe(mine_), s.message());
  if (dial_->done()) return on_connected();
  // A leader listens before it comes to the server, and both were there.
  const bool comes_first = at_root_ && visit_ == Visit::first && lost_.ok();
  const bool gone = !comes_first && dial_->is_refused();
  return gone || reach_by_.passed() ? could_not_reach(mine_, source_, *dial_) : Status();
}

Status Uplink::on_connected() {
  connection_ = dial_->take_connection();
  dial_.reset();
  if (!at_root_) {
    begin_reports(0);
    return {};
  }
  HelloFrame frame = hello_frame(mine_, deadline_, since(begun_));
  frame.tells = can_tell_ ? 1 : 0;
  frame.visit = static_cast<std::uint32_t>(visit_);
  return put(Frame::hello, bytes_of(frame));
}

/// `hellos_known_there`: of the first ones.
void Uplink::begin_reports(std::size_t hellos_known_there) {
  reports_ = true;
  hellos_sent_ = hellos_known_there;
  left_sent_ = 0;
  next_send_ = Deadline::in(milliseconds(0));
}

Status Uplink::put_reports() {
  if (!out_.empty() || !next_send_.passed()) return {};
  if (hellos_sent_ == known_.size() && left_sent_ == left_.size()) return {};
  out_ = {};
  while (hellos_sent_ < known_.size()) ANYCCL_CHECK(put_hellos());
  for (; left_sent_ < left_.size(); ++left_sent_)
    ANYCCL_CHECK(put(Frame::left, bytes_of(Left{left_[left_sent_]})));
  next_send_ = Deadline::in(kBetweenReports);
  return {};
}

/// The server may wait for late ranks: those that this one speaks for hear the answer from it. What
/// does not fit into the socket is left out.
void Uplink::report_the_rest() {
  if (!reports_) begin_reports(1);
  next_send_ = Deadline::in(milliseconds(0));
  if (put_reports().ok())
    static_cast<void>(out_.flush(connection_.socket.get(), source_.name).ok());
}

/// One frame of them.
Status Uplink::put_hellos() {
  const std::size_t end = std::min(known_.size(), hellos_sent_ + kMostHellos);
  std::vector<std::byte> payload;
  payload.reserve((end - hellos_sent_) * sizeof(HelloFrame));
  for (; hellos_sent_ < end; ++hellos_sent_) {
    const HelloFrame frame = aged(known_[hellos_sent_].frame, since(known_[hellos_sent_].came));
    const Bytes bytes = bytes_of(frame);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  hellos_ever_sent_ = std::max(hellos_ever_sent_, hellos_sent_);
  return put(Frame::hello, payload);
}

Status Uplink::put(Frame kind, Bytes payload) {
  ANYCCL_TRY(const FrameHeader header, seal(connection_.session, kind, payload));
  out_.put(bytes_of(header));
  out_.put(payload);
  return {};
}

}  // namespace anyccl::bootstrap
