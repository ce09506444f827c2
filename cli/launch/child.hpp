#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"
#include "launch/guard.hpp"

namespace anyccl::cli {

/// Environment variables to set, by name.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The setup of a child process.
struct ChildSetup {
  std::vector<std::string> command;
  Settings settings = {};      ///< On top of this process's environment.
  bool inherit_stdin = false;  ///< Otherwise /dev/null,
  bool control = false;        ///< or a socket whose other end is Child::control.
  bool pipe_output = false;    ///< Otherwise the child writes where this process writes.
  bool own_group = true;       ///< The child leads a process group of its own.
  sigset_t signal_mask = {};
  const Guard* guard = nullptr;  ///< It watches the child before the command begins; null: none.
};

struct Child {
  pid_t pid = -1;
  bool own_group = true;
  UniqueFd out = {}, err = {};  ///< Non-blocking read ends, if its output is piped.
  UniqueFd control = {};        ///< As ChildSetup has it.

  /// The child, or its group, as kill() has it.
  pid_t target() const { return own_group ? -pid : pid; }
};

/// Why a command could not be started, as a shell would report it: 127 not found, 126 otherwise.
struct StartFailure {
  Status status = {};
  int exit_code = 0;
};

/// Starts `setup.command`, looked up in PATH. The child is killed when the calling thread ends,
/// also if its process goes on. On failure `child` is untouched and no process is left.
StartFailure start_child(const ChildSetup& setup, Child& child);

/// How a child ended.
struct Ending {
  bool by_signal = false;
  int value = 0;  ///< Exit code or signal number.

  bool good() const { return !by_signal && value == 0; }
  /// As shells have it: 128 + signal.
  int exit_code() const { return by_signal ? 128 + value : value; }
  /// "exit code 3" or "killed by SIGKILL".
  std::string text() const;
};

/// "SIGTERM"
std::string signal_name(int signal);

/// Replaces this process by `command`, with `settings` set. Returns only on failure.
Status replace_process(const std::vector<std::string>& command, const Settings& settings);

}  // namespace anyccl::cli
