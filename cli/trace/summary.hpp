#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/clocks.hpp"
#include "trace/traces.hpp"

namespace anyccl::cli {

/// Where the time of a rank went, over all its communicators. Nanoseconds; operations at the same
/// time count once.
struct RankTimes {
  std::string label;               ///< "rank 2 (host n7, pid 4911)"
  std::int64_t total = 0;          ///< From its first call to the end of its last operation.
  std::int64_t communicating = 0;  ///< An operation was under way.
  std::int64_t exposed = 0;        ///< The part in which a thread waited for one.
  std::int64_t for_late = 0;       ///< The part of that before the last rank came to it.
};

/// All calls of one kind and size, on all ranks.
struct OperationTimes {
  std::string kind;
  std::uint64_t bytes = 0;
  std::size_t calls = 0;
  std::int64_t total = 0, median = 0;  ///< Nanoseconds.
  std::int64_t for_late = 0;           ///< The part of the total before the last rank came.
};

/// A rank that came last to operations of its communicator.
struct LateRank {
  std::string communicator;
  int rank = 0;
  std::size_t last = 0, of = 0;        ///< So often, of so many operations.
  std::int64_t total = 0, median = 0;  ///< Nanoseconds after the median of the other ranks.
};

struct TraceSummary {
  std::vector<RankTimes> ranks;
  std::vector<OperationTimes> operations;  ///< The longest total first.
  std::vector<LateRank> late;              ///< The latest in total first.
  std::uint64_t left_out = 0;              ///< Operations that traces do not have.

  /// Exposed communication, of the time of all ranks: 0 to 1.
  double exposed_share() const;
  /// Waiting for ranks that had not come yet, of exposed communication.
  double late_share() const;
};

/// The summary of traces whose times are on one clock, see align().
TraceSummary summarize(const std::vector<RankTrace>& traces);

/// Exposed communication above this share of the time is too much.
inline constexpr double kMostExposed = 0.3;
/// Tables, and what to do about it.
std::string text_of(const TraceSummary& summary, const std::vector<HostClock>& clocks);
/// All of it, for programs: times in nanoseconds, shares from 0 to 1.
std::string json_of(const TraceSummary& summary, const std::vector<HostClock>& clocks);

}  // namespace anyccl::cli
