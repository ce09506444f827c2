#pragma once
// A Recorder keeps these sums over all operations; metrics are made of them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "anyccl/types.hpp"
#include "base/types.hpp"

namespace anyccl {

struct Algorithm;
struct RecordedCall;
enum class OtherKind : std::uint8_t;

/// How many operations there were of each kind, algorithm and protocol, and what they came to.
class CallTotals {
 public:
  struct Row {
    const Algorithm* algorithm = nullptr;  ///< As RecordedCall has these four.
    Collective collective{};
    OtherKind other{};
    std::uint8_t protocol = 0;
    std::uint64_t calls = 0, failed = 0, bytes = 0;
    /// From their turn to their end; 0 for one that found everything there.
    std::uint64_t ticks = 0;
  };

  void add(std::span<const RecordedCall> calls);
  /// In the order in which they came first.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Row& row_of(const RecordedCall& call);

  std::vector<Row> rows_;
  std::size_t last_ = 0;  // was added to last; programs repeat themselves
};

}  // namespace anyccl
