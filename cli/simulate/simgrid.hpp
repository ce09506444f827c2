#pragma once

#include <cstdint>
#include <vector>

#include "anyccl/status.hpp"
#include "simulate/replay.hpp"

namespace anyccl::cli {

/// More are too many for SimGrid, whose time for a message grows with those in flight.
inline constexpr std::uint32_t kMostSimGridRanks = 4096;

/// What anyccl_simgrid.so has as anyccl_run_simgrid: replays, and returns false if a rank waits for
/// ever. The process has to end then: SimGrid may run once in a process, and nothing is deleted.
using SimGridRun = bool(const RankPrograms& programs, const Network& network,
                        const Machine& machine, double bytes,
                        const std::vector<std::uint32_t>& place, ReplayResult& result);

/// replay() by SimGrid, where what a flow leaves over is given to others (max-min fairness). It is
/// the check of our engine. In a process of its own. Without link_bytes. Errors: unsupported
/// without SimGrid, saying how to get it; invalid_argument for more than kMostSimGridRanks ranks or
/// a calibrated machine; internal, if it lost messages.
Result<ReplayResult> replay_by_simgrid(const RankPrograms& programs, const Network& network,
                                       const Machine& machine, double bytes,
                                       const std::vector<std::uint32_t>& place);

}  // namespace anyccl::cli
