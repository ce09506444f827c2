#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/traces.hpp"

namespace anyccl::cli {

/// One rank's part in an operation: calls[call] of traces[trace].
struct Part {
  std::size_t trace = 0, call = 0;
};

/// A collective, as far as ranks have begun it.
struct CommonCall {
  std::vector<Part> parts;   ///< At least two, by rank.
  bool is_complete = false;  ///< All ranks of the communicator are in it.
};
/// By communicator and sequence.
std::vector<CommonCall> common_calls_of(const std::vector<RankTrace>& traces);

/// A send and its receive.
struct Delivery {
  Part send, recv;
};
/// Those that can be told: messages of one pair and tag arrive in the order of the sends. None to a
/// rank that receives from any source, and none of a trace that has left out its beginning.
std::vector<Delivery> deliveries_of(const std::vector<RankTrace>& traces);

inline const TracedCall& call_of(const std::vector<RankTrace>& traces, Part part) {
  return traces[part.trace].calls[part.call];
}
/// The part that began last. Of times on one clock.
Part last_of(const std::vector<RankTrace>& traces, const CommonCall& common);

}  // namespace anyccl::cli
