#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "base/error.hpp"

namespace anyccl::cli {

/// Zeroed private memory in 4 KiB pages, all of them present.
class Memory {
 public:
  static Result<Memory> allocate(std::size_t bytes) {
    void* const start =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return system_error(errno, "allocate {} bytes", bytes);
    Memory memory(start, bytes);
    ::madvise(start, bytes, MADV_NOHUGEPAGE);  // Kernels without huge pages refuse: also right.
    memory.touch();
    return memory;
  }
  Memory(Memory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    if (start_ != nullptr) ::munmap(start_, bytes_);
  }

  void* get() const { return start_; }

 private:
  Memory(void* start, std::size_t bytes) : start_(start), bytes_(bytes) {}
  void touch() const {
    for (std::size_t i = 0; i < bytes_; i += 4096) static_cast<volatile char*>(start_)[i] = 0;
  }

  void* start_;
  std::size_t bytes_;
};

}  // namespace anyccl::cli
