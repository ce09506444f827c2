#include "launch/signals.hpp"

#include "base/error.hpp"

namespace anyccl::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<SignalQueue> SignalQueue::open() {
  ::signal(SIGCHLD, SIG_DFL);  // If ignored, children would vanish without an exit code.
  sigset_t wanted;
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    if (!is_ignored(signal)) ::sigaddset(&wanted, signal);
  UniqueFd fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return system_error(errno, "create a signalfd");
  ::sigaddset(&wanted, SIGPIPE);  // of readers that are gone: write() says so
  sigset_t former;
  if (::sigprocmask(SIG_BLOCK, &wanted, &former) != 0) return system_error(errno, "block signals");
  return SignalQueue(std::move(fd), former);
}

SignalQueue::~SignalQueue() {
  if (fd_) ::sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
}

std::optional<signalfd_siginfo> SignalQueue::next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info))
    return std::nullopt;
  return info;
}

}  // namespace anyccl::cli
