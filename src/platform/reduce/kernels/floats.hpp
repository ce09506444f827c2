#pragma once
// Floating-point elements. Whatever a kernel computed and is not a number becomes the one NaN of
// its type, because sign and payload depend on the order of operands in the instruction.

#include "platform/reduce/kernels/vectors.hpp"

#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace anyccl {
namespace {

/// Bits of a type: of the last one that is not a NaN, counting up from +0, and of the NaN.
template <size_t kBytes, std::uint64_t kLastNumber, std::uint64_t kOneNan>
struct Encoding {
  static constexpr size_t kElement = kBytes;
  static constexpr bool kRounds = true;
  static constexpr auto kLast = static_cast<Unsigned<kBytes>>(kLastNumber);
  static constexpr auto kNan = static_cast<Unsigned<kBytes>>(kOneNan);
};

// --- f32 and f64 --------------------------------------------------------------------------------

template <typename T, typename Bits>
struct Native : Bits {
  using Wide = T;  // what it is computed in
  template <size_t kBytes>
  struct Block {
    using Words = Vector<Signed<sizeof(T)>, kBytes>;
    [[gnu::always_inline]] explicit Block(Bytes from) : v(load<T, kBytes>(from)) {}
    [[gnu::always_inline]] void operator+=(const Block& other) { v += other.v; }
    [[gnu::always_inline]] void operator*=(const Block& other) { v *= other.v; }
    [[gnu::always_inline]] void operator/=(T by) { v /= by; }
    /// Returns the bits, with every NaN as the one of the type.
    [[gnu::always_inline]] Words bits() const {
      constexpr Signed<sizeof(T)> kNan = Bits::kNan;
      return v != v ? Words{} + kNan : reinterpret_cast<Words>(v);
    }
    Vector<T, kBytes> v;
  };
};
using F32 = Native<float, Encoding<4, 0x7f800000, 0x7fc00000>>;
using F64 = Native<double, Encoding<8, 0x7ff0000000000000, 0x7ff8000000000000>>;

// --- types of 16 and 8 bits, computed in f32 ----------------------------------------------------

/// All numbers of a block that begin at bit kShift of a 32-bit word or above. Small::widen makes
/// floats of those at kShift, Small::narrow rounds floats to bits there.
template <typename Small, size_t kBytes, int kShift = 0>
struct Packed {
  using Words = Vector<std::uint32_t, kBytes>;
  [[gnu::always_inline]] explicit Packed(Bytes from) : Packed(load<std::uint32_t, kBytes>(from)) {}
  [[gnu::always_inline]] explicit Packed(Words words)
      : here(Small::template widen<kBytes, kShift>(words)), above(words) {}
  /// Adds in f32: only bits() rounds.
  [[gnu::always_inline]] void operator+=(const Packed& other) {
    here += other.here;
    above += other.above;
  }
  /// Multiplies in f32: only bits() rounds.
  [[gnu::always_inline]] void operator*=(const Packed& other) {
    here *= other.here;
    above *= other.above;
  }
  [[gnu::always_inline]] void operator/=(float by) {
    here /= by;
    above /= by;
  }
  [[gnu::always_inline]] Words bits() const {
    return Small::template narrow<kBytes, kShift>(here) | above.bits();
  }
  Vector<float, kBytes> here;
  Packed<Small, kBytes, kShift + 8 * static_cast<int>(Small::kElement)> above;
};
template <typename Small, size_t kBytes>
struct Packed<Small, kBytes, 32> {
  using Words = Vector<std::uint32_t, kBytes>;
  [[gnu::always_inline]] explicit Packed(Words) {}
  [[gnu::always_inline]] void operator+=(const Packed&) {}
  [[gnu::always_inline]] void operator*=(const Packed&) {}
  [[gnu::always_inline]] void operator/=(float) {}
  [[gnu::always_inline]] Words bits() const { return Words{}; }
};

/// The upper half of an f32.
struct UpperHalf : Encoding<2, 0x7f80, 0x7fc0> {
  using Wide = float;
  template <size_t kBytes>
  using Block = Packed<UpperHalf, kBytes>;

  template <size_t kBytes, int kShift>
  [[gnu::always_inline]] static Vector<float, kBytes> widen(Vector<std::uint32_t, kBytes> words) {
    return reinterpret_cast<Vector<float, kBytes>>(kShift == 0 ? words << 16 : words & 0xffff0000U);
  }
  template <size_t kBytes, int kShift>
  [[gnu::always_inline]] static auto narrow(Vector<float, kBytes> value) {
    using Words = Vector<std::uint32_t, kBytes>;
    const Words bits = reinterpret_cast<Words>(value);
    const Words nearest = bits + 0x7fffU + ((bits >> 16) & 1U);  // Ties to even.
    const Words rounded = value != value ? Words{} + 0x7fc00000U : nearest;
    return kShift == 0 ? rounded >> 16 : rounded & 0xffff0000U;
  }
};

#if defined(__AVX512BF16__)

/// Rounded by the CPU's instruction, but that takes denormal numbers for zero and keeps what is in
/// a NaN: a block with one of these is rounded as elsewhere.
template <size_t kBytes>
struct Converted : Packed<UpperHalf, kBytes> {
  using Words = Vector<std::uint32_t, kBytes>;
  using Packed<UpperHalf, kBytes>::Packed;
  [[gnu::always_inline]] Words bits() const {
    if constexpr (kBytes == 64) {
      constexpr int kNanOrDenormal = 0x01 | 0x80 | 0x20;
      const auto even = this->here, odd = this->above.here;
      if ((_mm512_fpclass_ps_mask(even, kNanOrDenormal) |
           _mm512_fpclass_ps_mask(odd, kNanOrDenormal)) == 0) [[likely]]
        return in_turn(reinterpret_cast<Vector<std::uint16_t, 64>>(_mm512_cvtne2ps_pbh(odd, even)));
    }
    return Packed<UpperHalf, kBytes>::bits();
  }

 private:
  /// Interleaves the lanes of the two halves of `v`: 0, 16, 1, 17 and so on.
  [[gnu::always_inline]] static Words in_turn(Vector<std::uint16_t, 64> v) {
    return reinterpret_cast<Words>(
        __builtin_shufflevector(v, v, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24,
                                9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
  }
};

struct Bf16 : UpperHalf {
  template <size_t kBytes>
  using Block = Converted<kBytes>;
};

#else
using Bf16 = UpperHalf;
#endif

/// A sign, then kExponent bits, then kMantissa bits, as in IEEE 754. Without infinities as in OCP's
/// e4m3: the largest exponent is one of numbers, too, but with all ones in the mantissa it is the
/// NaN, and so is what is too large.
template <int kExponent, int kMantissa, bool kInfinities, std::uint64_t kOneNan>
struct Small : Encoding<(1 + kExponent + kMantissa) / 8,
                        kInfinities ? ((std::uint64_t{1} << kExponent) - 1) << kMantissa
                                    : (std::uint64_t{1} << (kExponent + kMantissa)) - 2,
                        kOneNan> {
  using Wide = float;
  template <size_t kBytes>
  using Block = Packed<Small, kBytes>;

  template <size_t kBytes, int kShift>
  [[gnu::always_inline]] static Vector<float, kBytes> widen(Vector<std::uint32_t, kBytes> words) {
    using Floats = Vector<float, kBytes>;
    using Ints = Vector<std::int32_t, kBytes>;
    const auto sign = reinterpret_cast<Ints>((words << (32 - kBits - kShift)) & kSign);
    const auto moved = reinterpret_cast<Ints>(((words >> kShift) & kMagnitude) << kDropped);
    // Subnormal numbers lack the leading one of the least normal one: add it and take it off again.
    const Floats lifted = reinterpret_cast<Floats>(moved + kLeastNormal) -
                          reinterpret_cast<Floats>(Ints{} + kLeastNormal);
    const Ints number = moved < kExponentUnit ? reinterpret_cast<Ints>(lifted) : moved + kRebias;
    constexpr std::int32_t kOnes = (255 - ((1 << kExponent) - 1)) * kExponentUnit;
    const Ints special = kInfinities ? moved + kOnes : Ints{} + std::int32_t{F32::kNan};
    constexpr std::int32_t kFirstSpecial = (kInfinities ? Small::kLast : kMagnitude) << kDropped;
    return reinterpret_cast<Floats>((moved < kFirstSpecial ? number : special) | sign);
  }

  /// To nearest, ties to even.
  template <size_t kBytes, int kShift>
  [[gnu::always_inline]] static auto narrow(Vector<float, kBytes> value) {
    using Floats = Vector<float, kBytes>;
    using Words = Vector<std::uint32_t, kBytes>;
    using Ints = Vector<std::int32_t, kBytes>;
    const auto bits = reinterpret_cast<Words>(value);
    const auto sign = reinterpret_cast<Ints>((bits & kSign) >> (32 - kBits));
    const auto magnitude = reinterpret_cast<Ints>(bits & ~kSign);
    const Ints odd = (magnitude >> kDropped) & 1;
    const Ints normal = (magnitude + odd + kAlmostHalf) >> kDropped;
    // The last place of kRounder is that of subnormal numbers, so the addition rounds to it.
    const auto rounded =
        reinterpret_cast<Floats>(magnitude) + reinterpret_cast<Floats>(Ints{} + kRounder);
    const Ints number =
        magnitude < kLeastNormal ? reinterpret_cast<Ints>(rounded) - kRounder : normal;
    constexpr std::int32_t kMost = kInfinities ? Small::kLast : kMagnitude;
    const Ints bounded = number > kMost ? Ints{} + kMost : number;
    const Ints is_nan = kInfinities ? value != value : bounded > std::int32_t{Small::kLast};
    return reinterpret_cast<Words>(is_nan ? Ints{} + std::int32_t{Small::kNan} : bounded | sign)
           << kShift;
  }

 private:
  static constexpr int kBits = 1 + kExponent + kMantissa;
  static constexpr int kDropped = 23 - kMantissa;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr std::uint32_t kSign = 0x80000000;
  static constexpr std::int32_t kMagnitude = (1 << (kExponent + kMantissa)) - 1;
  // Bits of f32:
  static constexpr std::int32_t kExponentUnit = 1 << 23;
  static constexpr std::int32_t kRebias = (127 - kBias) * kExponentUnit;
  static constexpr std::int32_t kLeastNormal = kRebias + kExponentUnit;
  static constexpr std::int32_t kRounder = (127 + 24 - kBias - kMantissa) * kExponentUnit;
  static constexpr std::int32_t kAlmostHalf = (1 << (kDropped - 1)) - 1 - kRebias;
};
using F8E4M3 = Small<4, 3, false, 0x7f>;
using F8E5M2 = Small<5, 2, true, 0x7f>;

#if defined(__F16C__) || defined(__aarch64__)

/// f16 where the CPU converts it: as many as fit a vector of floats.
template <size_t kBytes>
struct Halves {
  using Floats = Vector<float, 2 * kBytes>;
  [[gnu::always_inline]] explicit Halves(Bytes from) : v(widen(from)) {}
  [[gnu::always_inline]] explicit Halves(Floats from) : v(from) {}
  [[gnu::always_inline]] void operator+=(const Halves& other) { v += other.v; }
  [[gnu::always_inline]] void operator*=(const Halves& other) { v *= other.v; }
  [[gnu::always_inline]] void operator/=(float by) { v /= by; }
  /// Returns the numbers rounded to f16, with every NaN as the one of the type.
  [[gnu::always_inline]] auto bits() const {
    return narrow(v == v ? v
                         : reinterpret_cast<Floats>(Vector<std::int32_t, 2 * kBytes>{} +
                                                    std::int32_t{F32::kNan}));
  }
  Floats v;

 private:
#if defined(__aarch64__)
  [[gnu::always_inline]] static Floats widen(Bytes from) {
    return vcvt_f32_f16(vget_low_f16(vreinterpretq_f16_u16(load<std::uint16_t, kBytes>(from))));
  }
  [[gnu::always_inline]] static auto narrow(Floats number) {
    return vcombine_f16(vcvt_f16_f32(number), vcreate_f16(0));
  }
#else
  static constexpr unsigned short kAll = 0xffff;  // GCC 12 warns of the intrinsics without a mask.
  static constexpr int kNearest = 0;
  [[gnu::always_inline]] static Floats widen(Bytes from) {
    const auto halves = load<long long, kBytes>(from);
    if constexpr (sizeof(Floats) == 16) return _mm_cvtph_ps(halves);
    if constexpr (sizeof(Floats) == 32) return _mm256_cvtph_ps(halves);
#if defined(__AVX512F__)
    if constexpr (sizeof(Floats) == 64) return _mm512_maskz_cvtph_ps(kAll, halves);
#endif
  }
  [[gnu::always_inline]] static auto narrow(Floats number) {
    if constexpr (sizeof(Floats) == 16) return _mm_cvtps_ph(number, kNearest);
    if constexpr (sizeof(Floats) == 32) return _mm256_cvtps_ph(number, kNearest);
#if defined(__AVX512F__)
    if constexpr (sizeof(Floats) == 64) return _mm512_maskz_cvtps_ph(kAll, number, kNearest);
#endif
  }
#endif
};
template <>
struct Halves<kVector> {
  [[gnu::always_inline]] explicit Halves(Bytes from) : low(from), high(from + kVector / 2) {}
  /// Adds in f32: only bits() rounds.
  [[gnu::always_inline]] void operator+=(const Halves& other) {
    low += other.low;
    high += other.high;
  }
  /// Multiplies in f32: only bits() rounds.
  [[gnu::always_inline]] void operator*=(const Halves& other) {
    low *= other.low;
    high *= other.high;
  }
  [[gnu::always_inline]] void operator/=(float by) {
    low /= by;
    high /= by;
  }
  [[gnu::always_inline]] auto bits() const {
    return Two<decltype(low.bits())>{low.bits(), high.bits()};
  }
  Halves<kVector / 2> low, high;
};

struct F16 : Small<5, 10, true, 0x7e00> {
  template <size_t kBytes>
  using Block = Halves<kBytes>;
};

#else
using F16 = Small<5, 10, true, 0x7e00>;
#endif

}  // namespace
}  // namespace anyccl
