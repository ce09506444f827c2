#include "launch/guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.hpp"

namespace anyccl::cli {
namespace {

/// Outputs of the launcher must end with it, so the guard has none of its descriptors.
void close_all_but(int kept) {
  const int null = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, standard);
  const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
  for (int fd = STDERR_FILENO + 1; fd < most; ++fd)
    if (fd != kept) ::close(fd);
}

}  // namespace

Result<Guard> Guard::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "create a pipe");
  UniqueFd read(ends[0]), write(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return system_error(errno, "fork");
  if (pid == 0) guard(read.get());
  return Guard(pid, std::move(write));
}

Guard::~Guard() {
  if (!pipe_) return;
  pipe_.reset();
  ::kill(pid_, SIGKILL);  // it has nothing to do any more, and may be stopped
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guard::tell(const Word& word) const {
  while (::write(pipe_.get(), &word, sizeof word) < 0 && errno == EINTR) {
  }
}

/// Runs in the child, in a session of its own: signals to the launcher's group do not reach it.
void Guard::guard(int pipe) {
  ::setsid();
  ::prctl(PR_SET_NAME, "anyccl-guard");
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  close_all_but(pipe);
  std::vector<pid_t> watched;
  Word word{};
  for (;;) {
    const ssize_t got = ::read(pipe, &word, sizeof word);  // a pipe does not cut so short a write
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof word) break;
    if (word.is_watched)
      watched.push_back(word.target);
    else
      std::erase(watched, word.target);
  }
  for (const pid_t target : watched) ::kill(target, SIGKILL);
  ::_exit(0);
}

}  // namespace anyccl::cli
