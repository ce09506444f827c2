#pragma once

#include <utility>

#include "anyccl/communicator.hpp"

namespace anyccl {

/// Calls of this thread that are one place in the order of a communicator's calls: while it lives,
/// collectives of other threads wait. See anycclSequenceBegin. Local. The communicator outlives it.
///
/// Threads: the one that began it, which makes the calls.
class Sequence {
 public:
  /// Waits while another thread is in one. Errors: invalid_usage in a group, in a sequence of this
  /// thread, and while a communicator is made from this one by a call that did not block; timeout
  /// at the limit of the communicator.
  static Result<Sequence> begin(Communicator& comm) {
    const Status status =
        detail::status_of(anycclSequenceBegin(comm.handle(), ANYCCL_NO_TIMEOUT), comm.handle());
    if (!status.ok()) return status;
    return Sequence(comm.handle());
  }
  Sequence(Sequence&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence() { end(); }

  void end() {
    if (comm_ != nullptr) static_cast<void>(anycclSequenceEnd(std::exchange(comm_, nullptr)));
  }

 private:
  explicit Sequence(anycclComm_t comm) : comm_(comm) {}
  anycclComm_t comm_;
};

}  // namespace anyccl
