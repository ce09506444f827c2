#pragma once
// The exports of one compilation of kernels.cpp. Included by code built for newer CPUs than the
// rest, so it must not bring in anything with inline functions: the linker might keep that copy for
// all.

#include <cstddef>
#include <cstdint>

#include "anyccl/types.hpp"

namespace anyccl {

/// dst[i] = src[0][i] op src[1][i] op ..., folded by the aligned tree over their numbers: T(low,
/// high) = T(low, m) op T(m, high), where m is `low` and the largest power of two below high - low
/// (docs/adr/0056). Types of 16 and 8 bits are computed in f32 and rounded once, to nearest even.
/// One source: a copy. If `also` is not null, the result goes there too.
///
/// Shapes: `count` elements in each; sources >= 1. Any alignment. `dst` may be any of the sources;
///         there is no other overlap.
/// Result: the same bits on every CPU, whatever floating-point mode the caller has set.
///         Integers wrap.
///         max and min order -0 < +0 and are NaN if any source is. A NaN that was computed is the
///         positive quiet one without payload; of f8e4m3 and f8e5m2 it is 0x7f.
///         Too large for f16 or f8e5m2 is infinite; for f8e4m3, which has no infinity, NaN.
///         The product of complex numbers is the plain formula, without a special case for
///         infinities.
///         Logical operators ask which elements are not 0 and give 0 or 1. All of bool are logical:
///         sum and max are or, prod and min are and.
/// Threads: any.
using ReduceFn = void (*)(void* dst, void* also, const void* const* src, std::size_t sources,
                          std::size_t count);

/// dst[i] = src[i] / divisor: what makes an average of a sum. Integers are truncated; types of 16
/// and 8 bits are divided in f32 and rounded once, and of complex numbers both parts are divided.
///
/// Shapes: `count` elements in each. Any alignment. `dst` may be `src`; there is no other overlap.
///         0 < divisor <= 2^24, so that f32 has it.
/// Result, threads: as for ReduceFn.
using DivideFn = void (*)(void* dst, const void* src, std::size_t count, std::uint32_t divisor);

/// Copies `bytes` bytes between memories that do not overlap, where another core has the lines of
/// one: both sides are fetched ahead. Any alignment.
using CopyFn = void (*)(void* dst, const void* src, std::size_t bytes);

constexpr std::size_t kDTypes = static_cast<std::size_t>(DType::complex128) + 1;
constexpr std::size_t kReduceOps = static_cast<std::size_t>(ReduceOp::bxor) + 1;

/// The kernels for one type; null where the operator makes no sense. There is none for avg, which
/// is a sum and then one division.
struct TypeKernels {
  ReduceFn reduce[kReduceOps];
  DivideFn divide;
};

/// How the values of a sparse vector travel.
constexpr std::size_t kSparseValues = 3;  ///< f32, bf16, f16, in that order.

/// The loops of sparse vectors over vectors of f32, which may have any alignment: see
/// platform/reduce/sparse.hpp. Of `marks`, bit i % 64 of word i / 64 belongs to element i; those
/// beyond `count` are 0. The same bits on every CPU, whatever floating-point mode the caller has
/// set.
struct SparseKernels {
  /// Marks the elements of `x` whose bits without the sign are `least` (at most 2^31) or more, and
  /// counts them.
  std::size_t (*mark)(std::uint64_t* marks, const float* x, std::size_t count, std::uint32_t least);
  /// u[i] = m * u[i] + g[i], v[i] += u[i]. The three do not overlap.
  void (*momentum)(float* u, float* v, const float* g, std::size_t count, float m);
  /// Writes the marked elements of `v`, rounded, one after the other to `values`; leaves in `v`
  /// what was not written, and 0 in `u`, which may be null.
  void (*take[kSparseValues])(void* values, float* v, float* u, const std::uint64_t* marks,
                              std::size_t count);
  /// Adds `values` to the marked elements of `into`, in order.
  void (*add[kSparseValues])(float* into, const void* values, const std::uint64_t* marks,
                             std::size_t count);
};

/// Those of platform/reduce/codec.hpp, in their order, and the types of vectors: f32, bf16, f16.
constexpr std::size_t kCodecs = 7, kCodecTypes = 3;

/// Codes of whole blocks, one after the other, and the scale of each.
struct CodedBlocks {
  const unsigned char *codes, *scales;
};

/// The loops of one codec, over whole blocks.
struct CodecLoops {
  /// Codes and scales of `blocks` blocks of `x`, which may have any alignment.
  void (*encode)(unsigned char* codes, unsigned char* scales, const float* x, std::size_t blocks);
  /// y[i] = the sum of what `from` has for element i, folded by the aligned tree over its sources,
  /// one or more; a NaN is the positive quiet one without payload. Any bytes are codes and scales.
  /// `y` may have any alignment.
  void (*sum)(float* y, const CodedBlocks* from, std::size_t sources, std::size_t blocks);
};

/// The loops of block codecs: see platform/reduce/codec.hpp. The same bits on every CPU, whatever
/// floating-point mode the caller has set.
struct CodecKernels {
  /// to[i] = x[i], of the type, i < count. `x` may have any alignment.
  void (*widen[kCodecTypes])(float* to, const void* x, std::size_t count);
  /// y[i] = from[i] / divisor, rounded once. `y` may have any alignment, and may be `from`.
  void (*narrow[kCodecTypes])(void* y, const float* from, std::size_t count, float divisor);
  /// f8e4m3 and f8e5m2 are widened and narrowed by these, without a division.
  void (*widen_f8[2])(float* to, const void* x, std::size_t count);
  void (*narrow_f8[2])(void* y, const float* from, std::size_t count);
  CodecLoops of[kCodecs];
};

/// Whether reductions fetch lines ahead of their use: another core has those of memory that is
/// shared. Measured: docs/adr/0073.
extern const bool kFetchesAhead;

/// The kernels for one instruction set.
struct KernelTable {
  CopyFn copy;
  SparseKernels sparse;
  const CodecKernels* codecs;
  TypeKernels of[kDTypes];  ///< By DType.
};

}  // namespace anyccl
