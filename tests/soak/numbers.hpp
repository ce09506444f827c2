#pragma once
// What ranks contribute to a call, and what must come out of it, computed without the library.

#include <cstddef>
#include <cstdint>

#include "anyccl/types.hpp"

namespace anyccl::soak {

/// How the elements of a call are made.
struct Elements {
  std::uint64_t seed = 0;
  DType dtype = DType::f32;
  bool reduces = false;  ///< Else an element may have any bits.
  ReduceOp op = ReduceOp::sum;
  int ranks = 1;
};

/// Elements in a buffer: `count` of block `block`, reduced over the ranks `first` to `last`, at
/// element `at`. What one rank contributes is such a piece, too.
struct Piece {
  std::size_t at = 0, count = 0;
  int first = 0, last = 0, block = 0;
};

std::size_t bytes_of(DType dtype);
/// Whether every result of `op` is exact in `dtype`, and the library has it.
bool is_defined(ReduceOp op, DType dtype);
void write(const Elements& elements, const Piece& piece, std::byte* buffer);

/// 64 bits that depend on all bits of `x`.
std::uint64_t mix(std::uint64_t x);

}  // namespace anyccl::soak
