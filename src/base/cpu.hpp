#pragma once
// Code that polls or writes memory which other cores use takes these instructions of the CPU, for
// which C++ has no functions.

namespace anyccl {

/// Between two looks at memory that another core writes.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Starts to fetch the cache line at `address` for writing. The compiler's builtin fetches it only
/// for reading where the target may be older than the instruction (a no-op there).
inline void prefetch_for_writing(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" : : "r"(address));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace anyccl
