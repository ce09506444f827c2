#pragma once
// The shm transport takes what peers have written by read_once(), before it checks and uses it.

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace anyccl {

/// A copy of the object at `from`, in memory that another process may change at any time: what is
/// checked is what is used, as the compiler cannot read it there again.
template <typename T>
requires std::is_trivially_copyable_v<T> T read_once(const std::byte* from) {
  T copy;
  std::memcpy(&copy, from, sizeof copy);
  // For all that the compiler knows, this changes the copy.
  if constexpr (std::is_integral_v<T>)
    asm volatile("" : "+r"(copy));
  else
    asm volatile("" : "+m"(copy));
  return copy;
}

}  // namespace anyccl
