#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/child.hpp"

namespace anyccl::cli {

/// What the ranks of one host need to know of a job that spans several.
struct HostPart {
  int first_rank = 0;  ///< Those of this host are this one and the next ones.
  int world_size = 0;
  std::string master_addr = {};
  int master_port = 0;
  std::string secret = {};
  /// Where a launcher on another host tells what to do: a byte is a signal to pass on, the end
  /// stops the ranks. -1: there is no such launcher.
  int control = -1;
};

/// A program that runs as several local processes, one per rank.
struct Job {
  std::string name = {};  ///< The start of every message, such as "anyccl run".
  int ranks = 1;
  std::optional<HostPart> part = {};  ///< Absent: these are all ranks of the job.
  std::vector<std::string> command = {};
  Settings settings = {};        ///< For all ranks, besides RANK, WORLD_SIZE and the like.
  std::optional<int> port = {};  ///< MASTER_PORT; absent: a free one.
  bool prefix_output = true;     ///< Put "[rank] " before each line,
  bool coloured = false;         ///< in colours also where this process's output is no terminal.
  bool keep_going = false;       ///< Let the others go on when a rank fails.
  /// From SIGTERM to SIGKILL, when the others are stopped after a failure ...
  std::chrono::seconds grace{5};
  std::chrono::seconds user_grace{30};  ///< ... and after a SIGTERM or SIGHUP of the user.
};

/// Starts the ranks, passes their output and this process's SIGINT, SIGTERM, SIGHUP, SIGUSR1 and
/// SIGUSR2 on, and waits for all. A rank's process group ends with the rank. Names on stderr the
/// first failed rank.
///
/// Returns the exit code: 0, or that of the rank that failed first (128 + signal); 127 if the
/// program does not exist, 126 if it cannot be started. Call it from a process's only thread.
int run_job(const Job& job);

/// Says on stderr why a job cannot go on, and returns the exit code.
int fail(const Job& job, std::string_view message, int exit_code = 1);

}  // namespace anyccl::cli
