#pragma once
// Diagnosis says with this, in warnings and errors, for whom and in which call a rank waits.

#include <string>
#include <vector>

#include "framework/collective/execution.hpp"
#include "framework/membership/membership.hpp"
#include "framework/membership/routes.hpp"

namespace anyccl {

/// What a rank that waits for long says of its wait: for whom, in which call, and which ranks have
/// not come to that call, as far as it can be seen here.
///
/// Threads: the holder of the communicator's progress lock.
class WaitReport {
 public:
  /// Everything is borrowed.
  WaitReport(const Membership& me, const Routes& routes) : me_(me), routes_(routes) {}

  /// "rank 1 (host n7, pid 12) waits for rank 0 in operation 7, barrier, step 1 of 2 of
  /// barrier/dissemination; not there yet: rank 2 (host n7, pid 13) has called no collective".
  /// `collective`: the same operation, if it is one that has started.
  std::string text(const Operation& operation, const Execution* collective) const;
  /// "operation 7, barrier", if `rank` has called it and it comes after `sequence`; else empty.
  std::string call_after(Rank rank, std::uint64_t sequence) const;
  /// "in operation 7, barrier"
  static std::string where(const Operation& operation, const Execution* collective);

 private:
  std::string list(const std::vector<Rank>& ranks, bool in_full) const;
  std::string missing(std::uint64_t sequence, const std::vector<Rank>& awaited) const;
  std::string standing(Rank rank, std::uint64_t sequence) const;
  std::string calls_of(Rank rank, std::uint64_t sequence) const;
  std::string number_and_call(Rank rank, std::uint64_t sequence) const;
  bool is_of_this_process(Rank rank) const;
  /// False of ranks of other hosts, of which it is not known.
  bool is_stopped(Rank rank) const;

  const Membership& me_;
  const Routes& routes_;
};

}  // namespace anyccl
