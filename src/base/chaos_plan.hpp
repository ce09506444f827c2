#pragma once
// A ChaosPlan is what ANYCCL_CHAOS says, which read_config() parses. Links and the chaos transport
// do it to what they send and receive.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "anyccl/status.hpp"

namespace anyccl {

/// ANYCCL_CHAOS: the faults that this process adds to its connections, and the delays to shared
/// memory, and how often. For tests.
struct ChaosPlan {
  std::uint64_t seed = 1;
  /// Probability that after a read of a connection nothing can be read for `delay_time`. In shared
  /// memory, that what is published, sent or read is so late.
  double delay = 0;
  double partial = 0;    ///< Probability that a read or write moves only some of the bytes.
  double reorder = 0;    ///< Probability that a data frame that is sent is overtaken by the next.
  double drop = 0;       ///< Probability that a frame that is sent is lost.
  double duplicate = 0;  ///< Probability that a frame is sent twice.
  double cut = 0;        ///< Probability that the connection ends at a byte that is sent.
  double corrupt = 0;    ///< Probability that one bit of a byte that is received is flipped.
  std::size_t slow = 0;  ///< Bytes per second that are read at most; 0: any.
  std::chrono::nanoseconds delay_time{0};
  /// The process kills itself instead of publication or message fragment number `die` of a
  /// communicator, over any transport; 0: never.
  std::uint64_t die = 0;

  /// Whether connections have no faults, whatever `die` is.
  bool is_empty() const;
  /// "seed=7,delay=0.01:200us,cut=1e-6,slow=10M"; empty: no faults.
  /// Errors: invalid_argument saying what is wrong where.
  static Result<ChaosPlan> parse(std::string_view text);
};

}  // namespace anyccl
