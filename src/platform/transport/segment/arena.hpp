#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "platform/transport/segment/memory.hpp"

namespace anyccl {

/// Memory that local peers can map: what anycclMemAlloc hands out. One per process, because an
/// allocation belongs to no communicator. Any thread.
class Arena {
 public:
  struct Window {
    std::uint64_t id;  ///< Never reused in this process.
    std::byte* base;
    std::size_t bytes;
    int fd;  ///< Valid while the memory is not freed.
  };
  static Arena& of_process();

  Result<void*> allocate(std::size_t bytes);
  Status free(void* memory);
  /// The window that holds all of [at, at + bytes), if any.
  std::optional<Window> find(const void* at, std::size_t bytes) const;

 private:
  struct Block {
    std::uint64_t id;
    SharedMemory memory;
  };
  mutable std::mutex mutex_;
  std::map<const std::byte*, Block> blocks_;  // by address
  std::atomic<std::size_t> count_{0};         // so that find() is one load where nobody allocates
  std::uint64_t next_id_ = 1;
};

}  // namespace anyccl
