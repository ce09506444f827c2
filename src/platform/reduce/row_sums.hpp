#pragma once
// Sums over rows of 64 elements, by which verification compares memories that it does not have: see
// docs/adr/0060. Row j counts with a weight of its own, and lane b is element b of each row.
// Nothing here is code that collectives run. Included by code for newer CPUs than the rest: no
// inline functions.

#include <cstddef>
#include <cstdint>

#include "anyccl/types.hpp"

namespace anyccl {

constexpr std::size_t kRow = 64;  ///< Elements; lanes.

/// Memory may have any alignment. Whatever floating-point mode the caller has set, subnormal
/// numbers count.
struct RowSums {
  /// sums[b] += weights[j] times element b of row j, squares[b] += the element's square. Of f32,
  /// f64, f16, bf16, f8e4m3, f8e5m2; else null.
  void (*add_floats[17])(const void* rows, std::size_t count, const double* weights, double* sums,
                         double* squares);
  /// sums[b] += weights[j] * element b, modulo 2^64; only as many low bits of it as an element has
  /// count. By the logarithm of the element's bytes.
  void (*add_weighted[4])(const void* rows, std::size_t count, const std::uint64_t* weights,
                          std::uint64_t* sums);
  /// The sum of (low half of word i + low half of keys[i]) * (high halves' sum), of each 8 bytes of
  /// `words`.
  std::uint64_t (*hash)(const void* words, std::size_t count, const std::uint64_t* keys);
};

/// For this CPU.
const RowSums& row_sums();

}  // namespace anyccl
