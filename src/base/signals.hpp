#pragma once
// Two guards keep signals of the program and the library apart. Code that starts a thread or makes
// a file larger has one of them meanwhile.

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace anyccl {

/// Signals are for the program's own threads: a thread inherits the mask of the one that starts it,
/// so ours are started while one of these lives.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// Where a file may become larger than the process may make it: that is EFBIG while one of these
/// lives, and not SIGXFSZ, which ends the program.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() {
    ::sigemptyset(&mine_);
    ::sigaddset(&mine_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &mine_, &before_);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
  }
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;
  /// Takes away a SIGXFSZ that came meanwhile, but not one that was pending before. errno stays.
  ~FileSizeSignalHeld() {
    const int number = errno;
    constexpr timespec kNow{};
    if (!was_pending_) ::sigtimedwait(&mine_, nullptr, &kNow);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }

 private:
  sigset_t mine_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace anyccl
