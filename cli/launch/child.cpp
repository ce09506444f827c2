#include "launch/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/error.hpp"

namespace anyccl::cli {
namespace {

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "create a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<Pipe> make_control() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error(errno, "create a socket pair");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<std::string> environment_with(const Settings& settings) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (std::none_of(settings.begin(), settings.end(),
                     [&](const auto& s) { return s.first == name; }))
      entries.emplace_back(text);
  }
  for (auto setting = settings.begin(); setting != settings.end(); ++setting)
    if (std::none_of(setting + 1, settings.end(),  // the last one of a name counts
                     [&](const auto& later) { return later.first == setting->first; }))
      entries.push_back(setting->first + "=" + setting->second);
  return entries;
}

/// The null-terminated form that exec takes; valid while `texts` lives.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// The arguments of exec, made before the fork.
struct Image {
  Image(const std::vector<std::string>& command, const Settings& settings)
      : words(command), entries(environment_with(settings)) {}
  std::vector<std::string> words, entries;
  std::vector<char*> argv = pointers(words), envp = pointers(entries);
};

struct Ends {
  int in = -1;  ///< -1: see ChildSetup::inherit_stdin.
  int out = STDOUT_FILENO, err = STDERR_FILENO, report = -1;
};

/// In the child: everything up to exec. Only async-signal-safe calls.
[[noreturn]] void exec_in_child(const ChildSetup& setup, const Image& image, const Ends& ends,
                                pid_t parent) {
  constexpr int kNotStarted = 127;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotStarted);  // The parent died before the line above.
  if (setup.own_group) ::setpgid(0, 0);
  if (setup.guard != nullptr) setup.guard->watch(Child{::getpid(), setup.own_group}.target());
  if (ends.in >= 0) {
    ::dup2(ends.in, STDIN_FILENO);
  } else if (!setup.inherit_stdin) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);
  }
  if (ends.out != STDOUT_FILENO) ::dup2(ends.out, STDOUT_FILENO);
  if (ends.err != STDERR_FILENO) ::dup2(ends.err, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &setup.signal_mask, nullptr);
  ::execvpe(image.argv[0], image.argv.data(), image.envp.data());
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(ends.report, &reason, sizeof reason);
  ::_exit(kNotStarted);
}

StartFailure start_failure(Status status) {
  constexpr int kCannotRun = 126;
  return {std::move(status), kCannotRun};
}

StartFailure exec_refused(const std::string& program, int reason) {
  constexpr int kNotFound = 127, kCannotRun = 126;
  return {system_error(reason, "cannot start '{}'", program),
          reason == ENOENT ? kNotFound : kCannotRun};
}

/// The errno that the child reports if its exec failed; 0 when the pipe closes because it
/// succeeded.
int wait_for_exec(int fd) {
  int reason = 0;
  ssize_t got = 0;
  do got = ::read(fd, &reason, sizeof reason);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof reason) ? reason : 0;
}

}  // namespace

StartFailure start_child(const ChildSetup& setup, Child& child) {
  const Image image(setup.command, setup.settings);
  Result<Pipe> report = make_pipe();
  if (!report.ok()) return start_failure(report.status());
  Pipe control, out, err;
  Ends ends;
  if (setup.control) {
    Result<Pipe> made = make_control();
    if (!made.ok()) return start_failure(made.status());
    control = *std::move(made);
    ends.in = control.read.get();
  }
  if (setup.pipe_output) {
    Result<Pipe> first = make_pipe(), second = make_pipe();
    if (!first.ok()) return start_failure(first.status());
    if (!second.ok()) return start_failure(second.status());
    out = *std::move(first);
    err = *std::move(second);
    ::fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
    ends.out = out.write.get();
    ends.err = err.write.get();
  }
  ends.report = report->write.get();

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return start_failure(system_error(errno, "fork"));
  if (pid == 0) exec_in_child(setup, image, ends, parent);

  report->write.reset();
  if (const int reason = wait_for_exec(report->read.get()); reason != 0) {
    if (setup.guard != nullptr) setup.guard->forget(Child{pid, setup.own_group}.target());
    ::waitpid(pid, nullptr, 0);
    return exec_refused(setup.command.front(), reason);
  }
  child = Child{pid, setup.own_group, std::move(out.read), std::move(err.read),
                std::move(control.write)};
  return {};
}

std::string signal_name(int signal) {
  // Linux's first 31, in order; sigabbrev_np() needs glibc 2.32.
  constexpr std::string_view kNames[] = {
      "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1", "SEGV",
      "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN", "TTOU",
      "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS"};
  if (signal < 1 || signal > static_cast<int>(std::size(kNames)))
    return fmt::format("signal {}", signal);
  return fmt::format("SIG{}", kNames[signal - 1]);
}

std::string Ending::text() const {
  return by_signal ? "killed by " + signal_name(value) : fmt::format("exit code {}", value);
}

Status replace_process(const std::vector<std::string>& command, const Settings& settings) {
  const Image image(command, settings);
  ::execvpe(image.argv[0], image.argv.data(), image.envp.data());
  return system_error(errno, "cannot start '{}'", command.front());
}

}  // namespace anyccl::cli
