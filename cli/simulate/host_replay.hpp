#pragma once

#include "anyccl/status.hpp"
#include "simulate/host_plans.hpp"
#include "simulate/machine.hpp"
#include "simulate/replay.hpp"

namespace anyccl::cli {

/// Replays one collective of ranks that share a host, as the library runs it: the plans that
/// schedules are lowered to, in tiles of which up to two are in flight, through slots and rings
/// that are free again once they have been read. Each step is work of a core, see HostCosts. Ranks
/// that share a core take turns, and one that still waits passes the core on, too. The result is
/// the median over some orders of the ranks. `machine` has a calibration with memory rates. bytes:
/// of the vector, or of a block. touches: each rank writes its input and reads its output first, in
/// its own time, as `anyccl tune` does between calls; a rank's time begins after that. log: filled
/// if not null, for one of the orders.
/// Errors: internal, if ranks wait for ever.
Result<ReplayResult> replay_on_host(const HostPlans& plans, const Machine& machine,
                                    std::size_t bytes, bool touches = false,
                                    ReplayLog* log = nullptr);

}  // namespace anyccl::cli
