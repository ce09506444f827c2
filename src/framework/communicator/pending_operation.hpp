#pragma once
// The C interface and streams keep what they have issued in this form, and wait for it, also in
// several communicators at once.

#include <memory>
#include <span>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// An operation and where it was issued, which it keeps alive.
struct PendingOperation {
  std::shared_ptr<Comm> comm;
  std::shared_ptr<Operation> operation;

  /// It is done, or its communicator has failed; one on a device is done soon then.
  bool is_over() const {
    return operation->done() || (!operation->is_on_device() && !comm->failure().ok());
  }
  /// Once it is over.
  Status status() const { return operation->done() ? operation->status() : comm->failure(); }
};

/// Returns when all are complete, making progress in all of their communicators, with the first
/// error. `noted`: see Comm::note_wait().
Status wait_all(std::span<const PendingOperation> operations, bool noted = true);
/// Returns when one is over, making progress in all of their communicators: which one. Their
/// number: none was at `deadline`.
std::size_t wait_any(std::span<const PendingOperation> operations, Deadline deadline = {});
/// Says which one is over; their number: none is. If none is yet, makes progress once in all of
/// their communicators first.
std::size_t test_any(std::span<const PendingOperation> operations);

}  // namespace anyccl
