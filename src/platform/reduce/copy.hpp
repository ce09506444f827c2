#pragma once

#include <cstddef>
#include <cstring>

namespace anyccl {

/// Between these copy_bytes() asks far_copy(): elsewhere the C library's copy is as fast. Measured:
/// docs/adr/0025.
inline constexpr std::size_t kFarCopyFrom = 32768, kFarCopyTo = std::size_t{1} << 20;

/// The copy that is fastest on this CPU if another core has the lines of one of the memories.
void far_copy(void* dst, const void* src, std::size_t bytes);

/// Copies `bytes` bytes that do not overlap, from or into memory that is shared with other cores;
/// both pointers may be null if there are none.
inline void copy_bytes(void* dst, const void* src, std::size_t bytes) {
  if (bytes >= kFarCopyFrom && bytes < kFarCopyTo) return far_copy(dst, src, bytes);
  if (bytes != 0) std::memcpy(dst, src, bytes);
}

}  // namespace anyccl
