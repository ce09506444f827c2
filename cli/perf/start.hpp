#pragma once

#include "base/config.hpp"
#include "launch/child.hpp"
#include "perf/options.hpp"

namespace anyccl::cli {

inline constexpr int kUsualRanks = 2;

/// Which ranks measure.
struct Ranks {
  std::optional<int> count =
      {};                ///< Absent: kUsualRanks, or those of the job that this process is part of.
  bool threads = false;  ///< As threads of this process, instead of processes.
  Settings settings = {};  ///< Environment variables that they must have.
};

/// The library's defaults, whatever this user has set, over one transport.
Settings default_settings(const std::string& transport);

/// Errors: invalid_argument saying that `what` starts its ranks itself, where this process is a
/// rank of a job of several already.
Status check_not_a_rank(const Config& config, std::string_view what);

/// Runs this very command once for each algorithm and protocol that supports it, one after the
/// other. Returns the largest of their exit codes, or 1 or 2 as run_perf() does.
int run_all_combinations(const PerfOptions& options, const Ranks& ranks);

/// Runs the sweep as one rank of the environment's job or as threads, for which it restarts this
/// process if it lacks `ranks.settings`, or by starting this command once per rank. Returns the
/// exit code: 0, 1 if it failed or a value was wrong, 2 if the request is invalid.
int run_perf(const PerfOptions& options, const Ranks& ranks);

}  // namespace anyccl::cli
