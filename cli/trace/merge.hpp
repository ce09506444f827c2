#pragma once

#include <string>
#include <vector>

#include "trace/clocks.hpp"
#include "trace/traces.hpp"

namespace anyccl::cli {

/// One timeline of all ranks as Chrome's trace events: a process per process, in it a track per
/// communicator, one more for each stream that has queued operations, and some for messages; arrows
/// from each send to its receive, and from the rank that came last to a collective to all others.
/// `traces` and `clocks`: as align() leaves them.
std::string merged_timeline(const std::vector<RankTrace>& traces,
                            const std::vector<HostClock>& clocks);

}  // namespace anyccl::cli
