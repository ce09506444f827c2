#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "anyccl/status.hpp"
#include "base/private_fd.hpp"

namespace anyccl::shm {

/// The private memory of another process, read with process_vm_readv ("cross-memory attach"): one
/// copy, straight from its buffer into ours. Many systems forbid it (Yama, containers, other
/// users), so it must have been tried before it is relied upon.
class CmaReader {
 public:
  CmaReader() = default;
  /// Of the process at the other end of a connected unix socket. Errors: system_error.
  static Result<CmaReader> of_peer(int socket);

  /// Whether readers find [memory, memory + bytes) of this process: the kernel refuses memory that
  /// a device shows, and all of a process that hides. Tries the first and the last byte.
  static bool shows(const std::byte* memory, std::size_t bytes);
  /// Whether reading a long message so is faster than two copies through shared memory.
  static bool is_fast();

  explicit operator bool() const { return pid_ > 0; }
  /// Fills into[0, bytes) from `address` over there. Errors: remote_error if the process has ended
  /// (then the bytes may be another's and must not be used), system_error if they cannot be read.
  Status read(std::byte* into, std::uint64_t address, std::size_t bytes) const;

 private:
  Status ended() const;

  PrivateFd process_;
  pid_t pid_ = 0;
};

}  // namespace anyccl::shm
