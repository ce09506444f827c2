#pragma once
// The loops of sparse vectors (platform/reduce/sparse.hpp): which elements are large, and moving
// those out of a vector and into one.

#include "platform/reduce/kernels/vectors.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace anyccl {
namespace {

constexpr std::uint32_t kSignOfF32 = 0x80000000, kInfinityOfF32 = 0x7f800000;
constexpr std::uint32_t kNanOfF32 = 0x7fc00000;

[[gnu::always_inline]] inline std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
[[gnu::always_inline]] inline float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
[[gnu::always_inline]] inline float load_float(const float* from) {
  float x;  // they may have any alignment
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
[[gnu::always_inline]] inline void store_float(float* to, float x) {
  __builtin_memcpy(to, &x, sizeof x);
}

// --- which elements are large -------------------------------------------------------------------

/// A bit for each lane of a vector of floats whose magnitude has larger bits than `below`.
[[gnu::always_inline]] inline std::uint64_t larger(Bytes from, std::int32_t below) {
  using Ints = Vector<std::int32_t, kVector>;
  const Ints magnitude = load<std::int32_t, kVector>(from) & 0x7fffffff;
#if defined(__AVX512F__)
  return _mm512_cmpgt_epi32_mask(reinterpret_cast<__m512i>(magnitude), _mm512_set1_epi32(below));
#else
  const Ints found = magnitude > below;
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps(reinterpret_cast<__m256>(found)));
#elif defined(__x86_64__)
  return static_cast<unsigned>(_mm_movemask_ps(reinterpret_cast<__m128>(found)));
#else
  std::uint64_t bits = 0;
  for (size_t lane = 0; lane < kVector / 4; ++lane)
    bits |= static_cast<std::uint64_t>(found[lane] & 1) << lane;
  return bits;
#endif
#endif
}

/// Overwrites `marks` with a bit for each element of `x` whose bits without the sign are `least` or
/// more, and returns how many there are.
[[maybe_unused]] size_t mark_larger(std::uint64_t* marks, const float* x, size_t count,
                                    std::uint32_t least) {
  constexpr size_t kLanes = kVector / sizeof(float), kWord = 64;
  const auto below = static_cast<std::int32_t>(least - 1);  // of 0: -1, which all are above
  size_t found = 0;
  for (size_t first = 0; first < count; first += kWord) {
    std::uint64_t word = 0;
    if (count - first >= kWord) {
      for (size_t i = 0; i < kWord; i += kLanes)
        word |= larger(reinterpret_cast<Bytes>(x + first + i), below) << i;
    } else {
      for (size_t i = 0; i < count - first; ++i)
        if (static_cast<std::int32_t>(bits_of(load_float(x + first + i)) & ~kSignOfF32) > below)
          word |= std::uint64_t{1} << i;
    }
    marks[first / kWord] = word;
    found += static_cast<size_t>(__builtin_popcountll(word));
  }
  return found;
}

// --- momentum -----------------------------------------------------------------------------------

[[maybe_unused]] void accumulate_momentum(float* u, float* v, const float* g, size_t count,
                                          float m) {
  constexpr size_t kLanes = kVector / sizeof(float);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto velocity = load<float, kVector>(reinterpret_cast<Bytes>(u + i)) * m +
                          load<float, kVector>(reinterpret_cast<Bytes>(g + i));
    const auto sum = load<float, kVector>(reinterpret_cast<Bytes>(v + i)) + velocity;
    store<kVector>(reinterpret_cast<unsigned char*>(u + i), velocity);
    store<kVector>(reinterpret_cast<unsigned char*>(v + i), sum);
  }
  for (; i < count; ++i) {
    const float velocity = load_float(u + i) * m + load_float(g + i);
    store_float(u + i, velocity);
    store_float(v + i, load_float(v + i) + velocity);
  }
}

// --- values as they travel ----------------------------------------------------------------------

struct SparseF32 {
  using Word = std::uint32_t;
  [[gnu::always_inline]] static Word from(std::uint32_t bits) { return bits; }
  [[gnu::always_inline]] static std::uint32_t to(Word word) { return word; }
};

/// To nearest, ties to even; a finite number stays finite, and the rest of it stays behind.
struct SparseBf16 {
  using Word = std::uint16_t;
  [[gnu::always_inline]] static Word from(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & ~kSignOfF32, sign = bits & kSignOfF32;
    if (magnitude > kInfinityOfF32) return kNanOfF32 >> 16;
    if (magnitude == kInfinityOfF32) return static_cast<Word>(bits >> 16);
    std::uint32_t rounded = (magnitude + 0x7fff + ((magnitude >> 16) & 1)) >> 16;
    if (rounded >= kInfinityOfF32 >> 16) rounded = (kInfinityOfF32 >> 16) - 1;
    return static_cast<Word>(sign >> 16 | rounded);
  }
  [[gnu::always_inline]] static std::uint32_t to(Word word) { return std::uint32_t{word} << 16; }
};

struct SparseF16 {
  using Word = std::uint16_t;
  static constexpr std::uint32_t kInfinity = 0x7c00, kNan = 0x7e00, kSign = 0x8000;
  static constexpr std::uint32_t kLeastNormal = 0x38800000;  // 2^-14, in f32
  // Below, the last place of an f16 is 2^-24: that of f32 numbers in [1/2, 1).
  static constexpr float kRounder = 0.5F;
  /// Rounds to nearest, ties to even; a finite number stays finite.
  static Word from(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & ~kSignOfF32, sign = bits >> 16 & kSign;
    if (magnitude > kInfinityOfF32) return kNan;
    if (magnitude == kInfinityOfF32) return static_cast<Word>(sign | kInfinity);
    std::uint32_t rounded;
    if (magnitude < kLeastNormal)
      rounded = bits_of(float_of(magnitude) + kRounder) - bits_of(kRounder);
    else
      rounded = (magnitude - (112U << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    if (rounded >= kInfinity) rounded = kInfinity - 1;
    return static_cast<Word>(sign | rounded);
  }
  static std::uint32_t to(Word word) {
    const std::uint32_t magnitude = word & 0x7fffU, sign = (word & kSign) << 16;
    if (magnitude > kInfinity) return kNanOfF32;
    if (magnitude == kInfinity) return sign | kInfinityOfF32;
    // As a number with the exponent of f32, whose least normal ones have a 1 that denormal ones
    // lack.
    if (magnitude < 0x400)
      return sign | bits_of(float_of((magnitude << 13) + kLeastNormal) - float_of(kLeastNormal));
    return sign | ((magnitude << 13) + (112U << 23));
  }
};

// --- out of a vector and into one ---------------------------------------------------------------

/// Calls `of(i)` for each bit i of `marks`, in order.
template <typename Of>
[[gnu::always_inline]] inline void each_marked(const std::uint64_t* marks, size_t count,
                                               const Of& of) {
  for (size_t first = 0; first < count; first += 64)
    for (std::uint64_t word = marks[first / 64]; word != 0; word &= word - 1)
      of(first + static_cast<size_t>(__builtin_ctzll(word)));
}

/// Infinities and NaNs leave nothing behind: Inf - Inf would stay as a NaN for ever.
[[gnu::always_inline]] inline float left_behind(float value, float sent) {
  return (bits_of(sent) & ~kSignOfF32) < kInfinityOfF32 ? value - sent : 0.0F;
}

template <typename Value>
[[maybe_unused]] void take_marked(void* values, float* v, float* u, const std::uint64_t* marks,
                                  size_t count) {
  using Word = typename Value::Word;
  auto* to = static_cast<unsigned char*>(values);
  each_marked(marks, count, [&](size_t i) {
    const float value = load_float(v + i);
    const Word word = Value::from(bits_of(value));
    __builtin_memcpy(to, &word, sizeof word);
    to += sizeof word;
    store_float(v + i, left_behind(value, float_of(Value::to(word))));
    if (u != nullptr) store_float(u + i, 0.0F);
  });
}

/// Adds `values`, one for each mark, side by side and in order, to the marked elements.
template <typename Value>
[[maybe_unused]] void add_marked(float* into, const void* values, const std::uint64_t* marks,
                                 size_t count) {
  using Word = typename Value::Word;
  auto from = static_cast<Bytes>(values);
  each_marked(marks, count, [&](size_t i) {
    Word word;
    __builtin_memcpy(&word, from, sizeof word);
    from += sizeof word;
    const float sum = load_float(into + i) + float_of(Value::to(word));
    store_float(into + i, sum == sum ? sum : float_of(kNanOfF32));
  });
}

}  // namespace
}  // namespace anyccl
