#pragma once
// The large elements of a vector: which they are, how they travel, and how they are added up.
// Nothing here knows of ranks. ext/sparse.h describes the functions, and
// docs/numbers/sparse-gradients.md the format.

#include <cstddef>
#include <cstdint>
#include <span>

#include "anyccl/anyccl.h"
#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// Elements of a block of a payload: a place in it has 16 bits.
inline constexpr std::size_t kSparseBlock = 65536;
/// For a bit of each element of a block.
using SparseMarks = std::uint64_t[kSparseBlock / 64];

/// A vector of f32 that may have any alignment.
struct SparseVector {
  float* data = nullptr;
  std::size_t count = 0;
  /// The block that begins at `first`, or what there is of it.
  std::size_t block(std::size_t first) const {
    return count - first < kSparseBlock ? count - first : kSparseBlock;
  }
};

/// The cut above which about `keep` elements of `x` lie, by the magnitudes of a fixed sample; it
/// takes no zeros.
/// Errors: invalid_argument (keep > count).
Result<anycclSparseCut_t> sparse_threshold(const SparseKernels& kernels, SparseVector x,
                                           std::size_t keep);
/// The cut that takes exactly the `k` largest elements of `x`, the first ones of equal ones.
/// Errors: invalid_argument (k > count).
Result<anycclSparseCut_t> sparse_top_k(const SparseKernels& kernels, SparseVector x, std::size_t k);

/// The bytes that `entries` of `count` elements take at most.
/// Errors: invalid_argument (entries > count, or too many), unsupported (values).
Result<std::size_t> sparse_bound(std::size_t count, std::size_t entries, DType values);

/// Moves what the cut takes from `residual` into `payload`, and clears it in `momentum`, which is
/// null or as long; returns the bytes of the payload. What rounding to `values` loses stays in
/// `residual`.
/// Errors: invalid_argument (the payload is shorter than the bound, or the vector has changed since
///         the cut was made: part of it may have been moved then), unsupported (values).
Result<std::size_t> sparse_pack(const SparseKernels& kernels, SparseVector residual,
                                float* momentum, const anycclSparseCut_t& cut, DType values,
                                std::span<std::byte> payload);

/// Adds a payload, whatever its bytes are, to `into`. Bytes behind its end are ignored.
/// Errors: invalid_argument (no payload of as many elements; nothing was added).
Status sparse_add(const SparseKernels& kernels, std::span<const std::byte> payload,
                  SparseVector into);

}  // namespace anyccl
