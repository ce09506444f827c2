#pragma once

#include <string>
#include <vector>

#include "blame/dumps.hpp"

namespace anyccl::cli {

/// The ranks that held up others, and how.
struct Blame {
  /// "nobody", "mismatch", "dead", "silent", "left", "stopped", "aborted", "no_dump", "absent",
  /// "cycle", "unclear", "failure" or "slow".
  std::string kind;
  std::string communicator;  ///< As people call it; empty: none in particular.
  std::vector<int> ranks;    ///< The culprits, of that communicator.
  std::string text;          ///< A paragraph.
};

/// Compares what the ranks of all communicators of a job have written.
Blame find_blame(const std::vector<RankDump>& dumps);

}  // namespace anyccl::cli
