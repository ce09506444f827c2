#pragma once
// round_up() gives buffers and shared memory sizes of whole pages or cache lines.

#include <cstddef>

namespace anyccl {

/// To a multiple of `to`.
constexpr std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

}  // namespace anyccl
