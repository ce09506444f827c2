#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "anyccl/anyccl.h"
#include "base/error.hpp"

namespace anyccl::cli {

/// Memory in 4 KiB pages, all of them present: private, or if `arena` from anycclMemAlloc. It
/// begins `offset` bytes behind the beginning of a page, as blocks of malloc and NumPy do.
class Memory {
 public:
  static Result<Memory> allocate(std::size_t size, bool arena, std::size_t offset = 0) {
    const std::size_t bytes = size + offset;
    if (arena) {
      void* start = nullptr;
      if (anycclMemAlloc(&start, bytes) != anycclSuccess)
        return error(Code::system_error, "{}", anycclGetLastError(nullptr));
      return Memory(start, bytes, true, offset);
    }
    void* const start =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return system_error(errno, "allocate {} bytes", bytes);
    Memory memory(start, bytes, false, offset);
    ::madvise(start, bytes, MADV_NOHUGEPAGE);  // Kernels without huge pages refuse: also fine.
    memory.touch();
    return memory;
  }
  Memory(Memory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)),
        bytes_(other.bytes_),
        arena_(other.arena_),
        offset_(other.offset_) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    if (arena_)
      anycclMemFree(start_);
    else if (start_ != nullptr)
      ::munmap(start_, bytes_);
  }

  void* get() const { return static_cast<std::byte*>(start_) + offset_; }

 private:
  Memory(void* start, std::size_t bytes, bool arena, std::size_t offset)
      : start_(start), bytes_(bytes), arena_(arena), offset_(offset) {}
  void touch() const {
    for (std::size_t i = 0; i < bytes_; i += 4096) static_cast<volatile char*>(start_)[i] = 0;
  }

  void* start_;
  std::size_t bytes_;
  bool arena_;
  std::size_t offset_;
};

}  // namespace anyccl::cli
