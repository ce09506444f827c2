#include "launch/supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace anyccl::cli {
namespace {

/// How long a line may have no end before it is shown without: as a prompt, or a bar of progress.
constexpr std::chrono::milliseconds kShowAfter{50};
/// And how long what ranks have written is offered to a reader that takes nothing, once the user
/// has stopped them.
constexpr std::chrono::seconds kOfferOutput{1};

/// These mean something to a rank alone: its children would die of them. The job goes on.
bool is_private(int signal) {
  return signal == SIGUSR1 || signal == SIGUSR2;
}

}  // namespace

/// To stderr; without a reader, nothing.
template <typename... T>
void Supervisor::say(fmt::format_string<T...> format, T&&... arguments) {
  errors_.add(nullptr, fmt::format(format, std::forward<T>(arguments)...));
}

void Supervisor::add(Child child, std::string title, std::optional<int> rank) {
  Member member{std::move(child), std::move(title), {}};
  const auto stream = [&](UniqueFd from, int fd, Output& to) {
    const bool coloured = job_.coloured || ::isatty(fd) == 1;
    std::string prefix = rank ? rank_prefix(*rank, coloured) : "";
    if (from)
      member.streams.push_back(
          {std::move(from), &to, std::make_unique<LinePrefixer>(std::move(prefix))});
  };
  stream(std::move(member.child.out), STDOUT_FILENO, out_);
  stream(std::move(member.child.err), STDERR_FILENO, errors_);
  members_.push_back(std::move(member));
}

int Supervisor::wait_for_all() {
  while (any_running()) {
    wait_for_event();
    forward_output();
    handle_signals();
    handle_control();
    kill_after_grace();
  }
  finish_output();
  return first_failure_ ? first_failure_->ending.exit_code() : 0;
}

void Supervisor::kill_all() {
  for (Member& member : members_) {
    if (!std::exchange(member.running, false)) continue;
    signal_process(SIGKILL, member);
    guard_.forget(member.child.target());
    ::waitpid(member.child.pid, nullptr, 0);
  }
}

bool Supervisor::any_running() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.running; });
}

/// Returns the time to the next end of a grace period or of a wait for a line's end; -1: there is
/// none.
int Supervisor::poll_ms() const {
  Deadline next = std::min(kill_at_, give_up_at_);
  for (const Member& member : members_)
    for (const Stream& stream : member.streams) next = std::min(next, stream.show_at);
  return next.is_never() ? -1 : next.poll_ms();
}

void Supervisor::wait_for_event() const {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0},
                          {control_, POLLIN, 0},
                          {out_.pending_fd(), POLLOUT, 0},
                          {err_.pending_fd(), POLLOUT, 0}};
  for (const Member& member : members_)
    for (const Stream& stream : member.streams)
      if (stream.from && !stream.to->is_full()) fds.push_back({stream.from.get(), POLLIN, 0});
  ::poll(fds.data(), fds.size(), poll_ms());
}

void Supervisor::handle_signals() {
  bool child_ended = false;
  while (const auto signal = signals_.next()) {
    if (signal->ssi_signo == SIGCHLD)
      child_ended = true;
    else
      pass_on(*signal);
  }
  if (child_ended) collect_ended();
}

/// Passes a signal of the launcher on another host on, or stops the ranks when the socket ends.
/// After either, but for SIGUSR1 and SIGUSR2, failures are not reported here.
void Supervisor::handle_control() {
  pollfd entry{control_, POLLIN, 0};
  if (control_ < 0 || ::poll(&entry, 1, 0) != 1) return;
  unsigned char signal = 0;
  const bool ended = ::read(control_, &signal, 1) != 1;
  if (!ended && is_private(signal)) return send_all(signal);
  told_ = true;
  if (ended) {
    control_ = -1;
    return stop_others();
  }
  send_all(signal);
  if (signal == SIGTERM || signal == SIGHUP) begin_grace(signal, job_.user_grace);
}

/// A second SIGINT kills the ranks; only SIGTERM and SIGHUP begin a grace period.
void Supervisor::pass_on(const signalfd_siginfo& signal) {
  const int number = static_cast<int>(signal.ssi_signo);
  if (is_private(number)) return send_all(number);
  user_stops_ = true;
  if (number == SIGINT && std::exchange(interrupted_, true)) {
    say("{}: second SIGINT: killing all ranks\n", job_.name);
    return kill_ranks();
  }
  say("{}: passing {} on to all ranks{}\n", job_.name, signal_name(number),
      number == SIGINT ? " (a second one kills them)" : "");
  const bool from_terminal = signal.ssi_code == SI_KERNEL;
  for (const Member& member : members_) {
    // A child in our process group has had the terminal's signal already.
    const bool had_it = from_terminal && !member.child.own_group;
    if (member.running && !had_it) send(number, member);
  }
  if (number != SIGINT) begin_grace(number, job_.user_grace);
}

void Supervisor::collect_ended() {
  std::vector<Ended> ended;
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (const auto end = reap(i)) ended.push_back(*end);
  // Where ranks ended together, one that was killed is the cause, one with an exit code the effect.
  std::stable_partition(ended.begin(), ended.end(),
                        [](const Ended& e) { return e.ending.by_signal; });
  report_failures(ended);
}

std::optional<Supervisor::Ended> Supervisor::reap(std::size_t index) {
  Member& member = members_[index];
  if (!member.running) return std::nullopt;
  siginfo_t info{};
  const auto id = static_cast<id_t>(member.child.pid);
  if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  // Not reaped yet, so no other group can have this number.
  if (member.child.own_group) signal_process(SIGKILL, member);
  guard_.forget(member.child.target());
  ::waitpid(member.child.pid, nullptr, 0);
  member.running = false;
  close_output(member);
  return Ended{index, {info.si_code != CLD_EXITED, info.si_status}};
}

/// The first failure also gives the job's exit code, and stops the others unless the job keeps
/// going or the user has stopped it.
void Supervisor::report_failures(const std::vector<Ended>& ended) {
  for (const Ended& end : ended) {
    if (end.ending.good()) continue;
    const bool first = !first_failure_.has_value();
    // Another host's rank may have failed before, so there the word would be a guess.
    const bool knows_order = !job_.part && !members_[end.member].child.control;
    if (!told_ && (first || job_.keep_going))
      say("{}: {} failed{}: {}\n", job_.name, members_[end.member].title,
          first && knows_order ? " first" : "", end.ending.text());
    if (!first) continue;
    first_failure_ = end;
    if (!job_.keep_going && !user_stops_) stop_others();
  }
}

void Supervisor::stop_others() {
  if (!any_running()) return;
  send_all(SIGTERM);
  begin_grace(SIGTERM, job_.grace);
}

/// That of the first signal goes on.
void Supervisor::begin_grace(int signal, std::chrono::seconds grace) {
  if (!kill_at_.is_never()) return;
  kill_at_ = Deadline::in(grace);
  grace_text_ = fmt::format("{} s of {}", grace.count(), signal_name(signal));
}

/// Also kills the children themselves, such as ssh, when the time that kill_ranks() sets is over.
void Supervisor::kill_after_grace() {
  if (give_up_at_.passed()) {
    give_up_at_ = Deadline::never();
    for (const Member& member : members_)
      if (member.running) signal_process(SIGKILL, member);
  }
  if (!kill_at_.passed()) return;
  kill_at_ = Deadline::never();
  for (const Member& member : members_)
    if (member.running)
      say("{}: {} did not end within {}: killing it\n", job_.name, member.title, grace_text_);
  kill_ranks();
}

/// On other hosts by what runs there; where that does not answer its connection is closed in the
/// end.
void Supervisor::kill_ranks() {
  send_all(SIGKILL);
  give_up_at_ = Deadline::in(job_.grace);
}

void Supervisor::signal_process(int signal, const Member& member) {
  ::kill(is_private(signal) ? member.child.pid : member.child.target(), signal);
}

void Supervisor::send(int signal, const Member& member) const {
  if (!member.child.control) return signal_process(signal, member);
  const auto byte = static_cast<unsigned char>(signal);
  ::send(member.child.control.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Supervisor::send_all(int signal) const {
  for (const Member& member : members_)
    if (member.running) send(signal, member);
}

void Supervisor::forward_output() {
  out_.write_some();
  err_.write_some();
  for (Member& member : members_)
    for (Stream& stream : member.streams) {
      if (stream.from && !stream.to->is_full()) read_some(stream);
      if (!stream.show_at.passed()) continue;
      stream.show_at = Deadline::never();
      const std::string text = stream.lines->take_begun_line();
      stream.to->add(stream.lines.get(), text);
    }
}

/// False: there is nothing more for now.
bool Supervisor::read_some(Stream& stream) {
  char buffer[64 * 1024];
  const ssize_t got = ::read(stream.from.get(), buffer, sizeof buffer);
  if (got < 0) return errno == EINTR;  // else EAGAIN
  const std::string lines = got > 0 ? stream.lines->feed({buffer, static_cast<std::size_t>(got)})
                                    : stream.lines->end_line();
  stream.to->add(stream.lines.get(), lines);
  if (got == 0) stream.from.reset();
  stream.show_at =
      got > 0 && stream.lines->has_partial() ? Deadline::in(kShowAfter) : Deadline::never();
  return got > 0;
}

/// Passes on the bytes that are left in the pipes of a process that has ended. Other processes may
/// hold them, and write: they are not waited for.
void Supervisor::close_output(Member& member) {
  constexpr int kMostReads = 64;
  for (Stream& stream : member.streams) {
    for (int i = 0; i < kMostReads && stream.from && read_some(stream); ++i) {
    }
    const std::string rest = stream.lines->end_line();
    stream.to->add(stream.lines.get(), rest);
    stream.from.reset();
    stream.show_at = Deadline::never();
  }
}

/// All have ended: waits until a reader has taken what they wrote, unless the user stops that.
void Supervisor::finish_output() {
  Deadline offered = Deadline::in(kOfferOutput);
  while (out_.has_more() || err_.has_more()) {
    pollfd fds[] = {{signals_.fd(), POLLIN, 0},
                    {out_.pending_fd(), POLLOUT, 0},
                    {err_.pending_fd(), POLLOUT, 0}};
    ::poll(fds, std::size(fds), user_stops_ ? offered.poll_ms() : -1);
    const bool to_out = out_.write_some(), to_err = err_.write_some();
    if (to_out || to_err) offered = Deadline::in(kOfferOutput);
    while (const auto signal = signals_.next())
      user_stops_ = user_stops_ || (signal->ssi_signo != SIGCHLD &&
                                    !is_private(static_cast<int>(signal->ssi_signo)));
    if (user_stops_ && offered.passed()) return;
  }
}

}  // namespace anyccl::cli
