#pragma once
// The C interface and streams put into windows of peers, signal them, and wait for signals here.

#include <cstdint>
#include <memory>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// Puts, signals, and waits for signals of a communicator; see WindowRegistry for windows.
///
/// Threads: any. The communicator is borrowed.
class OneSidedCalls {
 public:
  explicit OneSidedCalls(Comm& comm) : comm_(comm) {}

  /// Runs the call to its end.
  Status run(const OneSidedCall& call);
  /// Issues it. With a closed gate it only takes its place.
  Result<std::shared_ptr<Operation>> issue(const OneSidedCall& call, Gate gate = Gate::open);

 private:
  Status check(const OneSidedCall& call);
  std::shared_ptr<Operation> start(const OneSidedCall& call, Gate gate, std::uint32_t poll_budget);
  Status fail_without_memory(const OneSidedCall& call);

  Comm& comm_;
};

}  // namespace anyccl
