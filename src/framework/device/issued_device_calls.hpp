#pragma once
// A thread looks after issued calls on memory of devices: nothing that a device does wakes anybody.

#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "base/condition.hpp"
#include "base/deadline.hpp"
#include "framework/device/device_operation.hpp"

namespace anyccl {

/// All of the process that are not complete. While there are any, their thread looks at each every
/// 50 microseconds.
///
/// Threads: any.
class IssuedDeviceCalls {
 public:
  using One = std::list<std::shared_ptr<DeviceWork>>;

  static IssuedDeviceCalls& of_process();
  /// Whether this thread is the one that looks after them.
  static bool is_this_thread();
  /// Before add(): starts the thread, if there is none. Errors: system_error.
  Status start();
  /// Any number of new operations.
  void add(One one) noexcept;
  /// Returns when no operation of `comm` is here, or at `deadline`. All of them end soon, once what
  /// they have on the host is complete.
  void await_end(const Comm& comm, Deadline deadline);
  /// Does the same for those whose data goes through queues: peers wait for that.
  void await_queued(const Comm& comm, Deadline deadline);
  /// At exit: no function of a driver is called any more, unless one takes longer than until
  /// `deadline`.
  void stop(Deadline deadline);

 private:
  template <typename Which>
  void await_none(const Which& which, Deadline deadline);
  One take_turn(std::unique_lock<std::mutex>& lock, bool& moved);
  void work();

  std::mutex mutex_;
  Condition added_, turned_;
  One open_;
  bool running_ = false, stopping_ = false, in_turn_ = false;
  std::uint64_t turn_ = 0;  // the number of the last one
};

}  // namespace anyccl
