#pragma once
// Types of elements as kernels of devices see them: one number at a time. Compiled for devices, and
// for the host by tests; so nothing here includes a header of a standard library.
//
// A type has Bits, as it lies in memory, Value, in which it is computed, widen() and narrow().
// Whatever was computed and is not a number becomes the one NaN of its type, as on the host
// (platform/reduce/kernels.hpp).

#if !defined(ANYCCL_ON_DEVICE)
#define ANYCCL_ON_DEVICE
#endif

namespace anyccl::kernels {

using U8 = unsigned char;
using U16 = unsigned short;
using U32 = unsigned;
using U64 = unsigned long long;

ANYCCL_ON_DEVICE inline U32 bits_of(float x) {
  return __builtin_bit_cast(U32, x);
}
ANYCCL_ON_DEVICE inline float float_of(U32 bits) {
  return __builtin_bit_cast(float, bits);
}

/// Integers as they are.
template <typename T>
struct Whole {
  using Bits = T;
  using Value = T;
  ANYCCL_ON_DEVICE static Value widen(Bits bits) { return bits; }
  ANYCCL_ON_DEVICE static Bits narrow(Value value) { return value; }
};

struct Truth {
  using Bits = U8;
  using Value = bool;
  ANYCCL_ON_DEVICE static Value widen(Bits bits) { return bits != 0; }
  ANYCCL_ON_DEVICE static Bits narrow(Value value) { return value ? 1 : 0; }
};

template <typename T, typename Word, Word kNan>
struct Native {
  using Bits = Word;
  using Value = T;
  ANYCCL_ON_DEVICE static Value widen(Bits bits) { return __builtin_bit_cast(T, bits); }
  ANYCCL_ON_DEVICE static Bits narrow(Value value) {
    return value != value ? kNan : __builtin_bit_cast(Word, value);
  }
};
using F32 = Native<float, U32, 0x7fc00000U>;
using F64 = Native<double, U64, 0x7ff8000000000000ULL>;

/// The upper half of an f32.
struct Bf16 {
  using Bits = U16;
  using Value = float;
  ANYCCL_ON_DEVICE static Value widen(Bits bits) { return float_of(U32{bits} << 16); }
  ANYCCL_ON_DEVICE static Bits narrow(Value value) {
    const U32 bits = bits_of(value), nearest = bits + 0x7fff + (bits >> 16 & 1);  // ties to even
    return static_cast<Bits>(value != value ? 0x7fc0U : nearest >> 16);
  }
};

/// A sign, kExponent bits, and kMantissa bits. Without infinities as in OCP's e4m3: all ones is the
/// NaN, and so are numbers that are too large.
template <typename Word, int kExponent, int kMantissa, bool kInfinities, U32 kNan>
struct Small {
  using Bits = Word;
  using Value = float;
  static constexpr U32 kDropped = 23 - kMantissa, kSign = 1U << (kExponent + kMantissa);
  static constexpr U32 kBias = (1U << (kExponent - 1)) - 1, kRebias = (127 - kBias) << 23;
  static constexpr U32 kLeastNormal = kRebias + (1U << 23);
  /// The first magnitude that is no number.
  static constexpr U32 kSpecial = kInfinities ? ((1U << kExponent) - 1) << kMantissa : kSign - 1;

  ANYCCL_ON_DEVICE static Value widen(Bits word) {
    const U32 magnitude = word & (kSign - 1), moved = magnitude << kDropped;
    const U32 sign = (word & kSign) != 0 ? 0x80000000U : 0;
    U32 bits = moved + kRebias;
    if (magnitude < 1U << kMantissa)  // denormal numbers lack the leading one of the least normal
      bits = bits_of(float_of(moved + kLeastNormal) - float_of(kLeastNormal));
    if (kInfinities && magnitude >= kSpecial)
      bits = magnitude == kSpecial ? 0x7f800000U : 0x7fc00000U;
    if (!kInfinities && magnitude == kSpecial) bits = 0x7fc00000U;
    return float_of(bits | sign);
  }

  /// Rounds to nearest, ties to even.
  ANYCCL_ON_DEVICE static Bits narrow(Value value) {
    const U32 bits = bits_of(value), magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<Bits>(kNan);
    U32 number = 0;
    if (magnitude < kLeastNormal) {
      // The float unit rounds, where the last place of a sum is that of the denormal numbers.
      constexpr U32 kRounder = (127 + 24 - kBias - kMantissa) << 23;
      number = bits_of(float_of(magnitude) + float_of(kRounder)) - kRounder;
    } else {
      const U32 odd = magnitude >> kDropped & 1;
      number = (magnitude - kRebias + (1U << (kDropped - 1)) - 1 + odd) >> kDropped;
    }
    if (!kInfinities && number >= kSpecial) return static_cast<Bits>(kNan);
    if (number > kSpecial) number = kSpecial;
    return static_cast<Bits>(number | ((bits >> 31) != 0 ? kSign : 0));
  }
};
using F16 = Small<U16, 5, 10, true, 0x7e00>;
using F8E4M3 = Small<U8, 4, 3, false, 0x7f>;
using F8E5M2 = Small<U8, 5, 2, true, 0x7f>;

/// A complex number has two parts, the real one first.
template <typename Part>
struct Complex {
  struct Bits {
    typename Part::Bits real, imaginary;
  };
  struct Value {
    typename Part::Value real, imaginary;
  };
  ANYCCL_ON_DEVICE static Value widen(Bits bits) {
    return {Part::widen(bits.real), Part::widen(bits.imaginary)};
  }
  ANYCCL_ON_DEVICE static Bits narrow(Value value) {
    return {Part::narrow(value.real), Part::narrow(value.imaginary)};
  }
};

}  // namespace anyccl::kernels
