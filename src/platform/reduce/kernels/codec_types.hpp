#pragma once
// What codecs are made of: bits of floats, and vectors of f32, bf16 and f16. As in
// kernels/codecs.hpp, these are plain loops.

#include <cstddef>
#include <cstdint>

namespace anyccl {
namespace {

using std::size_t;

// ANYCCL_APART stands before a loop whose steps do not depend on each other: else memory that might
// overlap is compared first. Clang makes an error of a loop that it then does not change, as
// without optimization.
#if defined(__clang__)
#define ANYCCL_APART
#else
#define ANYCCL_APART _Pragma("GCC ivdep")
#endif

/// In memory of any alignment. Copies of some hundred bytes to memory of our own would be
/// instructions (rep movs) that take longer than the loops.
template <typename T>
struct LooseOf {
  typedef T type __attribute__((aligned(1), may_alias));
};
template <typename T>
using Loose = typename LooseOf<T>::type;

constexpr std::uint32_t kSignBit = 0x80000000, kInfinityBits = 0x7f800000, kNanBits = 0x7fc00000;

[[gnu::always_inline]] inline std::uint32_t as_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
[[gnu::always_inline]] inline float as_float(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
/// As numbers of equal signs compare like their bits, which is one instruction for a vector of
/// them.
[[gnu::always_inline]] inline std::int32_t magnitude_of(float x) {
  return static_cast<std::int32_t>(as_bits(x) & ~kSignBit);
}
/// The NaN that each computed one becomes.
[[gnu::always_inline]] inline float one_nan(float x) {
  return x != x ? as_float(kNanBits) : x;
}

// --- types of elements ---------------------------------------------------------------------------

struct AsF32 {
  using Word = std::uint32_t;
  [[gnu::always_inline]] static float widen(Word word) { return as_float(word); }
  [[gnu::always_inline]] static Word narrow(float x) { return as_bits(one_nan(x)); }
};

/// Rounded to nearest even; numbers that are too large become infinite.
struct AsBf16 {
  using Word = std::uint16_t;
  [[gnu::always_inline]] static float widen(Word word) {
    return as_float(std::uint32_t{word} << 16);
  }
  [[gnu::always_inline]] static Word narrow(float x) {
    const std::uint32_t bits = as_bits(x), nearest = bits + 0x7fff + ((bits >> 16) & 1);
    return static_cast<Word>((x != x ? kNanBits : nearest) >> 16);
  }
};

struct AsF16 {
  using Word = std::uint16_t;
  static constexpr std::uint32_t kRebias = 112U << 23, kLeastNormal = 113U << 23;  // 2^-14
  [[gnu::always_inline]] static float widen(Word word) {
    const std::uint32_t sign = (word & 0x8000U) << 16, moved = (word & 0x7fffU) << 13;
    // As a number with the exponent of f32, whose least normal ones have a 1 that denormal ones
    // lack.
    const std::uint32_t small = as_bits(as_float(moved + kLeastNormal) - as_float(kLeastNormal));
    const std::uint32_t number = moved < 0x400U << 13 ? small : moved + kRebias;
    // A NaN is a quiet one, as instructions that convert make it.
    const std::uint32_t quiet = moved > 0x7c00U << 13 ? kNanBits & ~kInfinityBits : 0;
    return as_float(sign | (moved >= 0x7c00U << 13 ? (moved + 2 * kRebias) | quiet : number));
  }
  [[gnu::always_inline]] static Word narrow(float x) {
    const std::uint32_t bits = as_bits(x), magnitude = bits & ~kSignBit;
    const std::uint32_t sign = (bits & kSignBit) >> 16;
    // Below 2^-14 the last place is 2^-24: that of f32 numbers in [1/2, 1).
    const std::uint32_t small = as_bits(as_float(magnitude) + 0.5F) - as_bits(0.5F);
    const std::uint32_t normal = (magnitude - kRebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    const std::uint32_t number = magnitude < kLeastNormal ? small : normal;
    const std::uint32_t rounded = magnitude >= (143U << 23) || number > 0x7c00 ? 0x7c00U : number;
    return static_cast<Word>(magnitude > kInfinityBits ? 0x7e00U : sign | rounded);
  }
};

template <typename Type>
[[maybe_unused]] void widen(float* to, const void* x, size_t count) {
  const auto* const from = static_cast<const Loose<typename Type::Word>*>(x);
  ANYCCL_APART
  for (size_t i = 0; i < count; ++i) to[i] = Type::widen(from[i]);
}

template <typename Type>
[[maybe_unused]] void narrow(void* y, const float* from, size_t count, float divisor) {
  auto* const to = static_cast<Loose<typename Type::Word>*>(y);
  if (divisor == 1) {
    ANYCCL_APART
    for (size_t i = 0; i < count; ++i) to[i] = Type::narrow(from[i]);
  } else {
    ANYCCL_APART
    for (size_t i = 0; i < count; ++i) to[i] = Type::narrow(from[i] / divisor);
  }
}

}  // namespace
}  // namespace anyccl
