#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "anyccl/status.hpp"

namespace anyccl {

/// ANYCCL_CHAOS: the faults that this process adds to its connections, and the delays to shared memory, and how often. For
/// tests.
struct ChaosPlan {
  std::uint64_t seed = 1;
  /// Of the reads: the next one finds nothing for `delay_time`. In shared memory, of what is published, sent
  /// and read: it is so late.
  double delay = 0;
  double partial = 0;    ///< Of the reads and writes: it moves only some of the bytes.
  double reorder = 0;    ///< Of the data frames that are sent: the next one overtakes it.
  double drop = 0;       ///< Of the frames that are sent: it is lost.
  double duplicate = 0;  ///< Of the frames that are sent: it is sent twice.
  double cut = 0;        ///< Of the bytes sent: the connection ends there.
  double corrupt = 0;    ///< Of the bytes received: one bit is flipped.
  std::size_t slow = 0;  ///< Bytes per second that are read at most; 0: any.
  std::chrono::nanoseconds delay_time{0};
  /// The process kills itself instead of publication or message fragment number `die` of a communicator, over any transport;
  /// 0: never.
  std::uint64_t die = 0;

  /// Whether connections have no faults.
  bool is_empty() const;
  /// "seed=7,delay=0.01:200us,cut=1e-6,slow=10M"; empty: no faults.
  /// Errors: invalid_argument saying what is wrong where.
  static Result<ChaosPlan> parse(std::string_view text);
};

}  // namespace anyccl
