#pragma once
// The runtime and teams end communicators here, at the end of their use or of the program.

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// Ends a communicator without a failure: waits for what is open, and says goodbye to the peers.
///
/// Threads: any. The communicator is borrowed.
class Shutdown {
 public:
  explicit Shutdown(Comm& comm) : comm_(comm) {}

  /// Waits until everything issued is complete, then says goodbye. What is open at `deadline` fails
  /// with timeout: receives of which nothing has come here alone, anything else on all ranks. An
  /// earlier failure is an error here only if it is an invalid_usage that no call has returned.
  Status finish(Deadline deadline = {});
  /// At exit: says goodbye without waiting for anything, after stream workers have been kept from
  /// going on here. `deadline`: for what a worker is doing at the moment.
  void leave_for_exit(Deadline deadline);

 private:
  /// Waits and fails as finish() does, without the goodbye. An interrupt of it is an error, too.
  Status wait_for_all(Deadline deadline);
  Status end_late();
  bool has_ended(Deadline deadline, Status& late);
  void leave(Deadline deadline);

  Comm& comm_;
};

}  // namespace anyccl
