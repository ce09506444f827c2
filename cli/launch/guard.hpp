#pragma once

#include <sys/types.h>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {

/// A process that kills the processes left of a job when the launcher is killed: the kernel kills
/// the ranks then, but not their children.
class Guard {
 public:
  static Result<Guard> start();
  Guard(Guard&&) = default;
  /// Ends the process. It may still kill the targets that it watches, so forget() them before.
  ~Guard();

  /// From now on, or until forget(): as kill() has it, a process or, negative, a process group.
  /// A child may call it between fork and exec.
  void watch(pid_t target) const { tell({target, true}); }
  void forget(pid_t target) const { tell({target, false}); }

 private:
  struct Word {
    pid_t target;
    bool is_watched;
  };
  Guard(pid_t pid, UniqueFd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  void tell(const Word& word) const;
  [[noreturn]] static void guard(int pipe);

  pid_t pid_;
  UniqueFd pipe_;  // closed, also by the launcher's death, it ends the guard
};

}  // namespace anyccl::cli
