#pragma once

#include <memory>
#include <span>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// An operation and where it was issued, which it keeps alive.
struct PendingOperation {
  std::shared_ptr<Comm> comm;
  std::shared_ptr<Operation> operation;
};

/// Returns when all are complete, making progress in all of their communicators, with the first
/// error.
Status wait_all(std::span<const PendingOperation> operations);

}  // namespace anyccl
