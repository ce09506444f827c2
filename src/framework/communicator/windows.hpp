#pragma once
// The C interface registers windows here, and gives them back.

#include <cstdint>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// Makes memory a window, into which the peers of a communicator put, and takes it back. Both are
/// collective, and consist of several operations, which are one place in the order of its calls.
///
/// Threads: any. The communicator is borrowed.
class WindowRegistry {
 public:
  explicit WindowRegistry(Comm& comm) : comm_(comm) {}

  /// `bytes` at `at` become a window; the result is its number. `problem`: of this rank's
  /// arguments, which all ranks hear of.
  Result<std::uint32_t> add(std::byte* at, std::size_t bytes, const Status& problem);
  /// Returns when all puts into windows that were called before have landed here.
  Status remove(std::uint32_t window);

 private:
  /// Exchanges sizes and problems with all ranks, and keeps the sizes, which puts need. Errors: the
  /// problem of any rank, or windows of different numbers.
  Status agree(std::uint32_t window, std::size_t bytes, const Status& problem);
  /// Ends the window here, without waiting. A put that is still landing fails the communicator.
  Status close(std::uint32_t window);

  Comm& comm_;
};

}  // namespace anyccl
