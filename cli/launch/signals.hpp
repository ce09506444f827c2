#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <optional>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {

/// SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 as things to read, not interruptions. Of
/// all but SIGCHLD, those that this process was started to ignore (nohup) stay ignored. Blocks them
/// in the calling thread until destroyed.
class SignalQueue {
 public:
  /// Also blocks SIGPIPE until the result is destroyed, and gives SIGCHLD its default action.
  static Result<SignalQueue> open();
  SignalQueue(SignalQueue&& other) noexcept = default;
  SignalQueue& operator=(SignalQueue&& other) = delete;
  ~SignalQueue();

  int fd() const { return fd_.get(); }  ///< Readable when there is a signal.
  /// The next signal, if there is one.
  std::optional<signalfd_siginfo> next();
  /// The signals that were blocked before; children start with this mask.
  const sigset_t& former_mask() const { return former_mask_; }

 private:
  SignalQueue(UniqueFd fd, const sigset_t& former_mask)
      : fd_(std::move(fd)), former_mask_(former_mask) {}
  UniqueFd fd_;
  sigset_t former_mask_;
};

}  // namespace anyccl::cli
