#pragma once
// Chaos transports are for tests (ANYCCL_CHAOS): they stand around other transports, kill the
// process at some publication or fragment, and make data in shared memory late. The class Chaos in
// platform/link/chaos.hpp makes the faults of connections.

#include <memory>
#include <vector>

#include "base/chaos_plan.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl {

/// Puts transports of one communicator of rank `me` around these, which do the same, but for the
/// faults of `plan` that are no faults of connections: this process kills itself (SIGKILL) instead
/// of publication or message fragment number `die`, from 1, counted over all of them; and over
/// memory that ranks share, what a rank publishes, sends or reads is late by `delay_time` with
/// probability `delay`. Which it is follows from the seed, the rank and the numbers of operation
/// and publication, not from the time.
void add_chaos(std::vector<std::unique_ptr<Transport>>& transports, const ChaosPlan& plan, Rank me);

}  // namespace anyccl
