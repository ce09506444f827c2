#pragma once
// Calls of a communicator keep their order where one is in its own queue and one in a queue of the
// program.

#include <array>
#include <memory>

#include "framework/device/enqueued_operation.hpp"

namespace anyccl {

/// The calls that one rank has put into queues last. `directly`: into a queue of the program.
///
/// Threads: one at a time.
class LastCalls {
 public:
  /// The queue of the next call waits for the last one, unless both are in the communicator's own.
  /// Handles of the program's queues come again, so nobody knows whether two are the same.
  Status follow(Device& device, DeviceQueue queue, bool directly) const {
    const auto last = last_.lock();
    if (last == nullptr || last->done() || (!directly && !is_direct_)) return {};
    return device.wait(queue, last->end());
  }
  void add(const std::shared_ptr<EnqueuedOperation>& call, bool directly) {
    last_ = call;
    is_direct_ = directly;
    if (!directly) return;
    direct_[next_] = call;
    next_ = (next_ + 1) % direct_.size();
  }
  /// A call that must have ended before one more is put into a queue of the program, or null:
  /// nothing else keeps them from being too many there.
  std::shared_ptr<EnqueuedOperation> one_too_many() const {
    const auto oldest = direct_[next_].lock();
    return oldest == nullptr || oldest->done() ? nullptr : oldest;
  }

 private:
  std::weak_ptr<EnqueuedOperation> last_;
  bool is_direct_ = false;
  std::array<std::weak_ptr<EnqueuedOperation>, 64> direct_;
  std::size_t next_ = 0;
};

}  // namespace anyccl
