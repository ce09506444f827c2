#pragma once
// An operator of a program that is neither associative nor commutative: its results tell how it was
// called.

#include <cstddef>
#include <cstdint>

#include "anyccl/anyccl.h"

namespace anyccl::test {

inline std::uint32_t joined(std::uint32_t left, std::uint32_t right) {
  return left * 31 + right * 17 + 1;
}

/// Of vectors, as anycclRedOpCreate wants it.
inline void join(const void* in, void* inout, std::size_t count, anycclDataType_t, void*) {
  const auto* const right = static_cast<const std::uint32_t*>(in);
  auto* const left = static_cast<std::uint32_t*>(inout);
  for (std::size_t i = 0; i < count; ++i) left[i] = joined(left[i], right[i]);
}

}  // namespace anyccl::test
