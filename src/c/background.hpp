#pragma once
// A handle that does not block has a thread for its creation or its end. The calls of the C
// interface start it and ask for its result.

#include <functional>
#include <memory>
#include <mutex>

#include "base/condition.hpp"
#include "framework/communicator/team.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {

/// The work of a separate thread for a handle whose caller does not want to wait: create a
/// communicator, or finish one.
class Background {
 public:
  /// `when_abandoned`: what lets `job` end soon; may be null.
  static std::shared_ptr<Background> start(std::function<Result<CommPtr>()> job,
                                           std::function<void()> when_abandoned = {});

  /// Whether it has ended; also true in a forked child, which does not have its thread.
  bool done();
  /// Waits until it is done. A communicator comes out once; who asks again gets null, as does a
  /// forked child.
  /// `may_end`: the program may end the wait, see anycclThreadInterrupt; it is abandoned then.
  Result<CommPtr> wait_for_result(bool may_end = false);
  /// Nobody wants the result: a communicator that still comes of it is aborted.
  void abandon();

 private:
  Background();
  void run(const std::function<Result<CommPtr>()>& job);

  std::mutex mutex_;
  Condition ended_;
  bool done_ = false, abandoned_ = false;
  std::function<void()> when_abandoned_;
  Result<CommPtr> result_;
  std::uint64_t fork_generation_;
};

/// Makes all operations of `comm` fail with who aborted it.
void abort(Comm& comm);
void abort(Team& team);

}  // namespace anyccl
