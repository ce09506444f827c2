#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// One operation of a rank, as its dump has it. Times are real ones; 0: it has not come to that.
struct DumpedCall {
  std::uint64_t number = 0, sequence = 0;  ///< The latter is 0 for messages.
  std::string kind, state, what;           ///< `what`: "broadcast of 4 f32 from rank 1".
  std::int64_t issued_ns = 0, ended_ns = 0;
};

/// An operation that waited when the dump was written.
struct DumpedWait {
  std::uint64_t number = 0, sequence = 0;
  std::string what;
  std::vector<int> ranks;  ///< Empty: any.
};

/// What the writer of a dump knew about another rank.
struct DumpedPeer {
  int rank = 0;
  std::string process, state;  ///< "host n7, pid 12"; "left", "dead", see PeerState.
  bool stopped = false;
  std::uint64_t entered = 0;
};

/// What one rank of one communicator wrote.
struct RankDump {
  std::string communicator, name, process, reason, failure;
  int rank = 0, size = 0;
  bool aborted = false;        ///< The program of this rank has aborted the communicator.
  std::uint64_t sequence = 0;  ///< That of the last collective that it called.
  std::int64_t time_ns = 0;
  std::vector<DumpedCall> calls;
  std::vector<DumpedWait> waits;
  std::vector<DumpedPeer> peers;

  /// The call of this number; null if it has been overwritten, or there was none.
  const DumpedCall* call(std::uint64_t number) const;
};

/// Errors: invalid_argument, when `text` is not what a rank writes. Of a team it is the
/// communicator of its first thread.
Result<RankDump> parse_dump(const std::string& text);
/// Parses as parse_dump() does; of a team, the communicators of its other threads, too.
Result<std::vector<RankDump>> parse_dumps(const std::string& text);

/// Those in the files, and in the files of the folders that are named like dumps. Errors:
/// invalid_argument, naming the file that is no dump; also when there is none.
Result<std::vector<RankDump>> read_dumps(const std::vector<std::string>& paths);

}  // namespace anyccl::cli
