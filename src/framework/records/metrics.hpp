#pragma once
// A communicator says here what it has done. The runtime adds it up over the process, and the C
// interface gives it as JSON.

#include <cstdint>
#include <string>
#include <vector>

#include "framework/call/recorder.hpp"
#include "framework/membership/membership.hpp"

namespace anyccl {

/// CallTotals in words, which can be added up over communicators.
class SpentCalls {
 public:
  struct Row {
    std::string operation;            ///< "all_reduce", "send", "put": as dumps and traces call it.
    std::string algorithm, protocol;  ///< "ring", "LL"; "" of what is no collective.
    std::uint64_t calls = 0, failed = 0, bytes = 0;
    double seconds = 0;
  };

  SpentCalls() = default;
  /// Adds up all operations of `recorder`.
  explicit SpentCalls(const Recorder& recorder);
  void add(const SpentCalls& other);
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void add(Row row);

  std::vector<Row> rows_;
};

/// What one rank has done in a communicator so far, and what it holds for it.
struct Metrics {
  SpentCalls calls;
  std::uint64_t completed = 0;  ///< Collectives.
  std::size_t memory_bytes = 0;
  bool has_failed = false;
};

/// JSON; docs/observe/metrics.md has its fields.
std::string text_of(const Metrics& metrics, const Membership& me);

}  // namespace anyccl
