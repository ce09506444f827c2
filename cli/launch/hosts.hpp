#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "launch/job.hpp"

namespace anyccl::cli {

/// A host and how many ranks of a job it runs.
struct HostRanks {
  std::string name;  ///< As ssh takes it.
  int ranks = 0;
};

/// From a list like "a,b:2,user@c,[fd00::1]:4", and the number of ranks of the job.
///
/// If a host has a number, those without have one rank; they are filled from the first on, and no
/// number of ranks means all of them. Otherwise ranks are spread evenly, in blocks.
/// Errors: invalid_argument naming --hosts or --ranks and what does not fit.
Result<std::vector<HostRanks>> parse_hosts(std::string_view list, std::optional<int> ranks);

/// "HOST", "HOST:PORT", "[fd00::1]:PORT" or an IPv6 address. Errors: invalid_argument naming
/// --master and the text.
struct HostPort {
  std::string host;
  std::optional<int> port;
};
Result<HostPort> parse_master(std::string_view text);

/// A job whose ranks run on several hosts, started from here.
struct HostsJob {
  Job job;  ///< Name, command, settings, output and grace; the rest is filled for each host.
  std::vector<HostRanks> hosts;
  std::vector<std::string> ssh;  ///< The words before a host's name.
  std::optional<HostPort> master =
      {};  ///< Absent: the first host's name, and a port that is free here.
};

/// Starts `anyccl run --ordered` on each host, in this folder, and waits for all. The program file
/// is where it is here. localhost and this host's own name need no ssh. When a host fails or goes,
/// and on this process's signals, what runs on the others is stopped as run_job() does it, but what
/// does not answer is left after twice that time; when this process dies the hosts stop by
/// themselves.
///
/// Returns the exit code: that of the host whose failure was seen first.
int run_on_hosts(const HostsJob& hosts_job);

}  // namespace anyccl::cli
