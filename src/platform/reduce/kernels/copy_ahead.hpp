#pragma once
// The copy between caches: see CopyFn.

#include "platform/reduce/kernels/vectors.hpp"

namespace anyccl {
namespace {

/// As in base/cpu.hpp, which must not be included here: see kernels.cpp.
[[gnu::always_inline]] inline void fetch_for_writing(const unsigned char* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" : : "r"(line));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// Whole lines of `to`, which is at the beginning of one.
[[gnu::always_inline]] inline void copy_lines(unsigned char* to, Bytes from, size_t lines) {
  constexpr size_t kLine = 64, kAhead = 32;  // lines: the time of one on its way, measured
  using V = Vector<unsigned char, kVector>;
  for (size_t line = 0; line < lines; ++line, to += kLine, from += kLine) {
    if (line + kAhead < lines) {
      fetch_for_writing(to + kAhead * kLine);
      __builtin_prefetch(from + kAhead * kLine);
    }
    V vectors[kLine / kVector];
    __builtin_memcpy(vectors, from, kLine);
    __builtin_memcpy(to, vectors, kLine);
  }
}

[[maybe_unused]] void copy_ahead(void* dst, const void* src, size_t bytes) {
  constexpr size_t kLine = 64;
  auto* const to = static_cast<unsigned char*>(dst);
  const auto from = static_cast<Bytes>(src);
  const size_t to_line = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  const size_t head = to_line < bytes ? to_line : bytes;
  const size_t lines = (bytes - head) / kLine;
  const size_t tail = head + lines * kLine;
  if (head != 0) __builtin_memcpy(to, from, head);
  copy_lines(to + head, from + head, lines);
  if (tail != bytes) __builtin_memcpy(to + tail, from + tail, bytes - tail);
}

}  // namespace
}  // namespace anyccl
