#pragma once
// The C interface and metrics ask here what memory a communicator has; the background thread gives
// back what it does not use.

#include <cstddef>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// The memory of a communicator on this rank.
///
/// Threads: any. The communicator is borrowed.
class CommMemory {
 public:
  explicit CommMemory(Comm& comm) : comm_(comm) {}

  /// Bytes that this rank holds for it: what peers can map, buffers and scratch; not plans.
  std::size_t bytes();
  /// Does what bytes() does, for the holder of the progress lock.
  std::size_t bytes_here() const;
  /// Gives back what its transports do not use, see Transport; `unread` also if another thread is
  /// at work here. Also after the goodbye.
  GivenBack give_back();

 private:
  Comm& comm_;
};

}  // namespace anyccl
