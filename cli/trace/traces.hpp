#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// One operation of a rank, as its trace has it. Times are those of its host's monotonic clock; 0:
/// it has not come to that.
struct TracedCall {
  std::uint64_t sequence = 0;  ///< 0: a message.
  std::string kind;
  std::uint64_t bytes = 0;
  int root = -1;          ///< A message's peer, too; -1: any, or none.
  std::uint64_t tag = 0;  ///< A message's.
  std::int64_t issued_ns = 0, started_ns = 0, awaited_ns = 0, ended_ns = 0;
  int stream = 0;       ///< That has queued it; 0: none.
  int track = 0;        ///< Where it is drawn, of its rank: from 1, no more than calls.
  std::string details;  ///< Everything that is known of it, as JSON.

  bool is_over() const { return started_ns != 0 && ended_ns != 0; }
};

/// What one rank of one communicator wrote.
struct RankTrace {
  std::string communicator, name, host;
  int pid = 0, rank = 0, size = 0;
  std::int64_t time_ns = 0;         ///< When it wrote.
  std::int64_t real_offset_ns = 0;  ///< To be added to its times for the real ones.
  std::uint64_t left_out = 0;       ///< Operations that were forgotten, from the first on.
  std::vector<TracedCall> calls;    ///< In the order of the calls.

  std::string title() const { return name.empty() ? communicator : name; }
};

/// Errors: invalid_argument, when `text` is not what a rank writes.
Result<RankTrace> parse_trace(const std::string& text);

/// Those in the files, and in the files trace-*.json of the folders: larger communicators first,
/// then by communicator and rank. Errors: invalid_argument, naming the file that is no trace; also
/// when there is none, or two of one rank.
Result<std::vector<RankTrace>> read_traces(const std::vector<std::string>& paths);

}  // namespace anyccl::cli
