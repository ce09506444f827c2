#pragma once

#include <cstddef>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"
#include "simulate/devices/device_costs.hpp"
#include "simulate/replay.hpp"

namespace anyccl::cli {

/// Replays one collective of ranks on one host, each with a device of its own, as the library puts
/// it into queues of these: Enqueuer's commands, each when the host has put it there, its queue is
/// through with the one before, and its engine is free. A device copies each way at once, and has
/// one engine for all else. bytes: of the vector, or of a block, of floats. Result: no messages and
/// links. Errors: invalid_argument for what queues do not do; internal, if queues wait for ever.
Result<ReplayResult> replay_on_devices(const Algorithm& algorithm, const Shape& shape,
                                       const DeviceCosts& costs, std::size_t bytes);

}  // namespace anyccl::cli
