#pragma once
// Defines operator new and delete of the program: to be included by one file of it.

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace anyccl::test {

/// What was allocated by new and not deleted, with what the allocator adds; and the most that was,
/// since somebody set it. Any thread.
inline std::atomic<std::size_t> heap_bytes{0}, heap_peak{0};

inline void count_allocated(std::size_t bytes) {
  const std::size_t now = heap_bytes += bytes;
  std::size_t peak = heap_peak;
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now)) {
  }
}

}  // namespace anyccl::test

// Not inlined: the compiler would see a malloc() that ends in a delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  anyccl::test::count_allocated(::malloc_usable_size(memory) + sizeof(std::size_t));
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  anyccl::test::heap_bytes -= ::malloc_usable_size(memory) + sizeof(std::size_t);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}
