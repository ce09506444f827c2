#include "launch/supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace anyccl::cli {
namespace {

/// Writes everything, also to a terminal that was made non-blocking. Gives up when there is
/// no reader any more: the ranks go on.
void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wanted{fd, POLLOUT, 0};
      ::poll(&wanted, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

void Supervisor::add(Child child) {
  const int rank = static_cast<int>(members_.size());
  Member member{std::move(child), {}};
  const auto stream = [&](UniqueFd from, int to) {
    if (from)
      member.streams.push_back(
          {std::move(from), to, LinePrefixer(rank_prefix(rank, ::isatty(to) == 1))});
  };
  stream(std::move(member.child.out), STDOUT_FILENO);
  stream(std::move(member.child.err), STDERR_FILENO);
  members_.push_back(std::move(member));
}

int Supervisor::wait_for_all() {
  while (any_running()) {
    wait_for_event();
    forward_output();
    handle_signals();
    kill_after_grace();
  }
  return first_failure_ ? first_failure_->ending.exit_code() : 0;
}

void Supervisor::kill_all() {
  send_all(SIGKILL);
  for (Member& member : members_)
    if (std::exchange(member.running, false)) ::waitpid(member.child.pid, nullptr, 0);
}

bool Supervisor::any_running() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.running; });
}

int Supervisor::poll_ms() const {
  return kill_at_.is_never() ? -1 : kill_at_.poll_ms();
}

void Supervisor::wait_for_event() const {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
  for (const Member& member : members_)
    for (const Stream& stream : member.streams)
      if (stream.from) fds.push_back({stream.from.get(), POLLIN, 0});
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

void Supervisor::pass_on(const signalfd_siginfo& signal) {
  const int number = static_cast<int>(signal.ssi_signo);
  user_stops_ = true;
  if (number == SIGINT && std::exchange(interrupted_, true)) {
    fmt::print(stderr, "{}: second SIGINT: killing all ranks\n", job_.name);
    return send_all(SIGKILL);
  }
  fmt::print(stderr, "{}: passing {} on to all ranks{}\n", job_.name, signal_name(number),
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
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (const auto end = reap(rank)) ended.push_back(*end);
  // Of ranks that ended together, one that was killed is the cause, one with an exit code the
  // effect.
  std::stable_partition(ended.begin(), ended.end(),
                        [](const Ended& e) { return e.ending.by_signal; });
  report_failures(ended);
}

std::optional<Supervisor::Ended> Supervisor::reap(int rank) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (!member.running) return std::nullopt;
  siginfo_t info{};
  const auto id = static_cast<id_t>(member.child.pid);
  if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  // Not reaped yet, so no other group can have this number.
  if (member.child.own_group) send(SIGKILL, member);
  ::waitpid(member.child.pid, nullptr, 0);
  member.running = false;
  close_output(member);
  return Ended{rank, {info.si_code != CLD_EXITED, info.si_status}};
}

void Supervisor::report_failures(const std::vector<Ended>& ended) {
  for (const Ended& end : ended) {
    if (end.ending.good()) continue;
    const bool first = !first_failure_.has_value();
    if (!first && !job_.keep_going) continue;
    fmt::print(stderr, "{}: rank {} (pid {}) failed{}: {}\n", job_.name, end.rank,
               members_[static_cast<std::size_t>(end.rank)].child.pid, first ? " first" : "",
               end.ending.text());
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

void Supervisor::kill_after_grace() {
  if (!kill_at_.passed()) return;
  kill_at_ = Deadline::never();
  for (std::size_t rank = 0; rank < members_.size(); ++rank)
    if (members_[rank].running)
      fmt::print(stderr, "{}: rank {} (pid {}) did not end within {}: killing it\n", job_.name,
                 rank, members_[rank].child.pid, grace_text_);
  send_all(SIGKILL);
}

void Supervisor::send(int signal, const Member& member) const {
  ::kill(member.child.own_group ? -member.child.pid : member.child.pid, signal);
}

void Supervisor::send_all(int signal) const {
  for (const Member& member : members_)
    if (member.running) send(signal, member);
}

void Supervisor::forward_output() {
  for (Member& member : members_)
    for (Stream& stream : member.streams)
      if (stream.from) drain(stream);
}

void Supervisor::drain(Stream& stream) {
  char buffer[64 * 1024];
  while (true) {
    const ssize_t got = ::read(stream.from.get(), buffer, sizeof buffer);
    if (got > 0) {
      write_all(stream.to, stream.lines.feed({buffer, static_cast<std::size_t>(got)}));
    } else if (got == 0) {
      write_all(stream.to, stream.lines.flush());
      return stream.from.reset();
    } else if (errno != EINTR) {
      return;  // EAGAIN: nothing more for now.
    }
  }
}

void Supervisor::close_output(Member& member) {
  for (Stream& stream : member.streams) {
    if (!stream.from) continue;
    drain(stream);
    write_all(stream.to, stream.lines.flush());
    stream.from.reset();
  }
}

}  // namespace anyccl::cli
