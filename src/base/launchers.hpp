#pragma once
// Programs such as Slurm's srun and Open MPI's mpirun start ranks, each with its own environment
// variables. Code that creates a communicator from the environment, and commands that may run as
// ranks of a job, learn here which rank this process is.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "base/config.hpp"

namespace anyccl {

/// A program that starts ranks and tells each of them which it is, in environment variables of its
/// own. A launcher is one row of the table in launchers.cpp.
struct Launcher {
  std::string_view name;
  std::string_view rank, size;
  /// The variable with the number of ranks on this host, or else the one with the number of hosts.
  std::string_view local_size, hosts;
  /// The variables that together name the job, on all its hosts. Without them the process does that
  /// which has started the ranks of this host.
  std::vector<std::string_view> job;
  /// The variable with the hosts' names, in Slurm's form, the first of which has rank 0; or empty.
  std::string_view host_list;
  std::string_view passes_variable;  ///< How a user brings a variable to all ranks, for messages.
};
std::span<const Launcher> launchers();

/// What a launcher says.
struct Launch {
  const Launcher* by = nullptr;
  int rank = 0, size = 0;
  bool one_host = false;
  std::string job;         ///< Another one for each job of this user on a host.
  std::string first_host;  ///< Empty: unknown.
};

/// Reads RANK, WORLD_SIZE and MASTER_PORT, which `anyccl run` and torchrun set, see
/// Config::unreadable, and the variables of launchers().
void read_launcher_variables(Config& config);

/// The value of an environment variable, if it is set.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

/// What the launcher says that has started this process: of several, which may have started each
/// other, the first of the table whose variables are all set. Absent: there is none.
/// Errors: invalid_argument naming the variable.
Result<std::optional<Launch>> find_launch(const Lookup& lookup);
/// Looks at the variables that were set when `config` was read.
Result<std::optional<Launch>> find_launch(const Config& config);

/// Where this process is in a job of several ranks, for programs that can also start ranks
/// themselves.
struct PlaceInJob {
  int rank = 0, size = 0;
};
/// RANK and WORLD_SIZE (0 if it is not set), else what the launcher says; absent: in no such job.
/// Errors: as find_launch().
Result<std::optional<PlaceInJob>> find_place(const Config& config);

/// The first of the hosts in a list like "node[03-05,9],other": "node03".
std::string first_host_of(std::string_view list);

/// A port for the ranks of a job to meet at, the same on all hosts: from 10000 to 29999, below
/// those that the system hands out by itself. Jobs may have the same.
int port_of_job(const Launch& launch);

}  // namespace anyccl
