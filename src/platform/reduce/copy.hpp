#pragma once

#include <cstddef>
#include <cstring>

namespace anyccl {

/// Copies `bytes` bytes that do not overlap; both pointers may be null if there are none. The C
/// library's copy already switches to stores past the cache where that pays.
inline void copy(void* dst, const void* src, std::size_t bytes) {
  if (bytes != 0) std::memcpy(dst, src, bytes);
}

}  // namespace anyccl
