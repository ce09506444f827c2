#pragma once
// Transports and collectives copy data by copy_bytes(), which chooses the copy by length and
// addresses: memcpy() of lines that are in another core's cache is slow for some on some CPUs.

#include <cstddef>
#include <cstring>

namespace anyccl {

/// From so many bytes on, copy_bytes() asks long_copy(): below, the C library's copy is a loop of
/// vectors everywhere. Measured: docs/adr/0068.
inline constexpr std::size_t kLongCopyFrom = 2048;
/// Between these the C library's copy between caches is slow on some CPUs: docs/adr/0025. On some
/// it is from kLongCopyFrom on: docs/adr/0073.
inline constexpr std::size_t kFarCopyFrom = 32768, kFarCopyTo = std::size_t{1} << 20;

/// The copy that is fastest on this CPU for these addresses, if another core has the lines of one
/// of the memories.
void long_copy(void* dst, const void* src, std::size_t bytes);

/// Copies `bytes` bytes that do not overlap, from or into memory of a caller or memory that is
/// shared with other cores; both pointers may be null if there are none.
inline void copy_bytes(void* dst, const void* src, std::size_t bytes) {
  if (bytes >= kLongCopyFrom) return long_copy(dst, src, bytes);
  if (bytes != 0) std::memcpy(dst, src, bytes);
}

}  // namespace anyccl
