// The loops of RowSums, for one instruction set: compiled several times, as kernels.cpp is, with
// ANYCCL_ROW_SUMS the name of the table and ANYCCL_VECTOR_BYTES the width to work in. All is in an
// anonymous namespace for the reason that is said there.

#include "platform/reduce/row_sums.hpp"

#include "platform/reduce/kernels/default_mode.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kDoubles = ANYCCL_VECTOR_BYTES / 8;  // of a vector
template <typename T>
struct Vectors {
  typedef T Type __attribute__((vector_size(kDoubles * sizeof(T))));
};
using Doubles = Vectors<double>::Type;
using Floats = Vectors<float>::Type;
using Words = Vectors<std::uint32_t>::Type;

template <typename T>
[[gnu::always_inline]] inline typename Vectors<T>::Type load(const unsigned char* from) {
  typename Vectors<T>::Type v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

// --- from bits to numbers, exactly --------------------------------------------------------------

struct F64 {
  static constexpr std::size_t kBytes = 8;
  [[gnu::always_inline]] static Doubles widen(const unsigned char* from) {
    return load<double>(from);
  }
};
struct F32 {
  static constexpr std::size_t kBytes = 4;
  [[gnu::always_inline]] static Doubles widen(const unsigned char* from) {
    return __builtin_convertvector(load<float>(from), Doubles);
  }
};
struct Bf16 {
  static constexpr std::size_t kBytes = 2;
  /// Returns a vector of elements as doubles.
  [[gnu::always_inline]] static Doubles widen(const unsigned char* from) {
    const Words bits = __builtin_convertvector(load<std::uint16_t>(from), Words) << 16;
    return __builtin_convertvector(reinterpret_cast<Floats>(bits), Doubles);
  }
};
/// Makes doubles of magnitudes: takes each as that of an f32 with a smaller exponent, times what is
/// missing. From `first_special` on it is infinite or no number.
template <int kDropped>
[[gnu::always_inline]] inline Doubles widen_small(Words magnitude, Words sign, float missing,
                                                  std::uint32_t first_special) {
  using Ints = Vectors<std::int32_t>::Type;
  const Words moved = magnitude << kDropped;
  const auto number = reinterpret_cast<Words>(reinterpret_cast<Floats>(moved) * missing);
  const auto is_special = reinterpret_cast<Words>(reinterpret_cast<Ints>(magnitude) >=
                                                  static_cast<std::int32_t>(first_special));
  const Words special = moved | 0x7f800000U;
  const Words bits = (is_special & special) | (~is_special & number) | sign;
  return __builtin_convertvector(reinterpret_cast<Floats>(bits), Doubles);
}
[[gnu::always_inline]] inline Doubles widen_half(Words bits) {
  return widen_small<13>(bits & 0x7fffU, (bits & 0x8000U) << 16, 0x1p112F, 0x7c00);
}
struct F16 {
  static constexpr std::size_t kBytes = 2;
  [[gnu::always_inline]] static Doubles widen(const unsigned char* from) {
    return widen_half(__builtin_convertvector(load<std::uint16_t>(from), Words));
  }
};
struct F8E5M2 {
  static constexpr std::size_t kBytes = 1;
  [[gnu::always_inline]] static Doubles widen(const unsigned char* from) {
    return widen_half(__builtin_convertvector(load<std::uint8_t>(from), Words) << 8);
  }
};
struct F8E4M3 {
  static constexpr std::size_t kBytes = 1;
  /// Returns a vector of elements as doubles.
  [[gnu::always_inline]] static Doubles widen(const unsigned char* from) {
    const Words bits = __builtin_convertvector(load<std::uint8_t>(from), Words);
    return widen_small<20>(bits & 0x7fU, (bits & 0x80U) << 24, 0x1p120F, 0x7f);
  }
};

// --- loops --------------------------------------------------------------------------------------

/// Adds `count` rows to `sums`, each times its weight, and the squares of their elements, without
/// it, to `squares`: as many vectors at a time as registers hold.
template <typename Type>
void add_floats(const void* rows, std::size_t count, const double* weights, double* sums,
                double* squares) {
  constexpr std::size_t kTogether = 4, kWidth = kTogether * kDoubles, kPortion = 64;
  const auto* const bytes = static_cast<const unsigned char*>(rows);
  for (std::size_t first = 0; first < count; first += kPortion) {  // which stays in the cache
    const std::size_t last = first + kPortion < count ? first + kPortion : count;
    for (std::size_t b = 0; b < kRow; b += kWidth) {
      Doubles sum[kTogether], square[kTogether];
      __builtin_memcpy(sum, sums + b, sizeof sum);
      __builtin_memcpy(square, squares + b, sizeof square);
      for (std::size_t j = first; j < last; ++j) {
        const unsigned char* const row = bytes + (j * kRow + b) * Type::kBytes;
        const double weight = weights[j];
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kTogether; ++v) {
          const Doubles x = Type::widen(row + v * kDoubles * Type::kBytes);
          sum[v] += weight * x;
          square[v] += x * x;
        }
      }
      __builtin_memcpy(sums + b, sum, sizeof sum);
      __builtin_memcpy(squares + b, square, sizeof square);
    }
  }
}

/// Adds the rows, each times its weight, to `sums`. Computes in Sum, which wraps around, so only as
/// many low bits of a sum as Sum has are right.
template <typename Element, typename Sum>
void add_weighted(const void* rows, std::size_t count, const std::uint64_t* weights,
                  std::uint64_t* sums) {
  Sum own[kRow] = {};
  const auto* row = static_cast<const unsigned char*>(rows);
  for (std::size_t j = 0; j < count; ++j, row += kRow * sizeof(Element)) {
    const Sum weight = static_cast<Sum>(weights[j]);
    Element x[kRow];
    __builtin_memcpy(x, row, sizeof x);
    for (std::size_t b = 0; b < kRow; ++b) own[b] += weight * static_cast<Sum>(x[b]);
  }
  for (std::size_t b = 0; b < kRow; ++b) sums[b] += own[b];
}

std::uint64_t hash(const void* words, std::size_t count, const std::uint64_t* keys) {
  const auto* const bytes = static_cast<const unsigned char*>(words);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t word;
    __builtin_memcpy(&word, bytes + 8 * i, sizeof word);
    const auto low = static_cast<std::uint32_t>(word) + static_cast<std::uint32_t>(keys[i]);
    const auto high =
        static_cast<std::uint32_t>(word >> 32) + static_cast<std::uint32_t>(keys[i] >> 32);
    sum += std::uint64_t{low} * high;
  }
  return sum;
}

// The first in the order of DType.
// clang-format off
constexpr RowSums kTable = {
    {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     in_default_mode<add_floats<F16>>, in_default_mode<add_floats<F32>>, in_default_mode<add_floats<F64>>,
     in_default_mode<add_floats<Bf16>>, in_default_mode<add_floats<F8E4M3>>, in_default_mode<add_floats<F8E5M2>>},
    {add_weighted<std::uint8_t, std::uint32_t>, add_weighted<std::uint16_t, std::uint32_t>,
     add_weighted<std::uint32_t, std::uint32_t>, add_weighted<std::uint64_t, std::uint64_t>},
    hash};
// clang-format on

}  // namespace
}  // namespace anyccl

extern "C" {
extern const anyccl::RowSums ANYCCL_ROW_SUMS;
const anyccl::RowSums ANYCCL_ROW_SUMS = anyccl::kTable;
}
