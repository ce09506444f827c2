#pragma once

#include <cstdint>
#include <vector>

#include "anyccl/status.hpp"
#include "simulate/machine.hpp"
#include "simulate/network.hpp"
#include "simulate/programs.hpp"

namespace anyccl::cli {

/// When things happened, in seconds.
struct TimeSpan {
  double begin = 0, end = 0;
};
struct StepSpan : TimeSpan {
  std::uint32_t rank = 0, step = 0;
};
struct MessageSpan : TimeSpan {
  std::uint32_t from = 0, to = 0;
  double bytes = 0;
};
struct ReplayLog {
  std::vector<StepSpan> waits, additions;
  std::vector<MessageSpan> messages;
};

struct ReplayResult {
  double seconds = 0;              ///< Until the last rank is done.
  std::vector<double> done;        ///< By rank.
  std::uint64_t messages = 0;      ///< That arrived.
  std::vector<double> link_bytes;  ///< By link of the network; empty: not known.
};

/// Replays one collective in which a vector, or a block, has `bytes`. Each rank follows the order
/// of its steps: the messages of a send leave one after the other, as long as the rank is busy with
/// each; a receive waits for all of its messages, and then additions take the rank's time. Copies
/// take none. With a calibration, see StepCosts, also for ranks that share cores. place: the end of
/// the network at which each rank is. ranks_per_host: 0: all are on one; it matters with a
/// calibration only. log: filled if not null; it needs a record for each message. Errors: internal,
/// if ranks wait for ever.
Result<ReplayResult> replay(const RankPrograms& programs, const Network& network,
                            const Machine& machine, double bytes,
                            const std::vector<std::uint32_t>& place,
                            std::uint32_t ranks_per_host = 0, ReplayLog* log = nullptr);

}  // namespace anyccl::cli
