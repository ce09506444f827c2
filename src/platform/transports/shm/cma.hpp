#pragma once
// A CMA reader reads the private memory of another process with process_vm_readv ("cross-memory
// attach"): one copy, straight from its buffer into ours. Ranks try it on each other when they
// connect, and then read in this way data that a peer lends from its private memory.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "anyccl/status.hpp"
#include "platform/link/peer_process.hpp"

namespace anyccl::shm {

/// The private memory of another process. Many systems forbid to read it (Yama, containers, other
/// users), so it must have been tried before it is relied upon.
class CmaReader {
 public:
  CmaReader() = default;
  explicit CmaReader(std::shared_ptr<const link::PeerProcess> process)
      : process_(std::move(process)) {}

  /// Whether readers find [memory, memory + bytes) of this process: the kernel refuses memory that
  /// a device shows, and all of a process that hides. Tries the first and the last byte.
  static bool is_readable(const std::byte* memory, std::size_t bytes);
  /// Whether reading a long message so is faster than two copies through shared memory.
  static bool is_fast();

  explicit operator bool() const { return process_ != nullptr; }
  /// Fills into[0, bytes) from `address` over there. Errors: remote_error if the process has ended
  /// (then the bytes may be another's and must not be used), system_error if they cannot be read.
  Status read(std::byte* into, std::uint64_t address, std::size_t bytes) const;

 private:
  Status ended() const;

  std::shared_ptr<const link::PeerProcess> process_;
};

}  // namespace anyccl::shm
