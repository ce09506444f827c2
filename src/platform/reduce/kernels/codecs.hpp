#pragma once
// The loops of block codecs (platform/reduce/codec.hpp). They are plain loops over elements, which
// compilers make vectors of, as explicit vectors of bytes became code for one byte at a time (GCC
// 12). What keeps them so: no branch inside a loop, no clamp of a float, sources unrolled, the
// scale outside.

#include <cstddef>
#include <cstdint>

#include "platform/reduce/kernels.hpp"
#include "platform/reduce/kernels/codec_types.hpp"

namespace anyccl {
namespace {

// --- codecs --------------------------------------------------------------------------------------
//
// A codec has kBlock elements in a block, in kParts parts: element i of part p is value<p>(codes,
// i) times the scale of the block.

/// Returns the bits of the largest magnitude; a NaN counts as larger than infinity.
template <size_t kBlock>
[[gnu::always_inline]] inline std::int32_t largest(const Loose<float>* x) {
  std::int32_t most = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const std::int32_t magnitude = magnitude_of(x[i]);
    most = magnitude > most ? magnitude : most;
  }
  return most;
}

/// `x` as integers to nearest even, in the low bits: |x| < 2^22.
[[gnu::always_inline]] inline std::uint32_t nearest(float x) {
  constexpr float kRounder = 0x1.8p23F;
  return as_bits(x + kRounder);
}

/// A type of 16 bits.
template <typename Type>
struct Rounded {
  static constexpr size_t kBlock = 32, kParts = 1, kCodeBytes = 64, kScaleBytes = 0;
  using Code = Loose<std::uint16_t>;
  [[gnu::always_inline]] static void encode(Code* codes, unsigned char*, const Loose<float>* x) {
    ANYCCL_APART
    for (size_t i = 0; i < kBlock; ++i) codes[i] = Type::narrow(x[i]);
  }
  template <size_t>
  [[gnu::always_inline]] static float value(const Code* codes, size_t i) {
    return Type::widen(codes[i]);
  }
  [[gnu::always_inline]] static float scale(const unsigned char*) { return 1; }
};

/// Integers up to kMost, whose scale is a bf16 that is rounded up, so that no code is above kMost,
/// and that a code times the scale has 15 bits or less: decoding rounds nothing.
template <std::int32_t kMost>
struct UpScale {
  /// No inverse: the codes are 0, and the scale alone says what the block is.
  struct Scales {
    std::uint16_t bf16;
    float inverse;
  };
  /// For the largest magnitude in a block. Below 2^-119 the block is zeros.
  [[gnu::always_inline]] static Scales of(std::int32_t most) {
    constexpr std::int32_t kLeast = 8 << 23;
    if (most >= static_cast<std::int32_t>(kInfinityBits)) return {kNanBits >> 16, 0};
    if (most < kLeast) return {0, 0};
    const float exact = as_float(static_cast<std::uint32_t>(most)) * (1.0F / kMost);
    const std::uint32_t up = (as_bits(exact) + 0xffff) & 0xffff0000;
    return {static_cast<std::uint16_t>(up >> 16), 1.0F / as_float(up)};
  }
  /// Returns the inverse.
  [[gnu::always_inline]] static float write(unsigned char* scale, std::int32_t most) {
    const Scales scales = of(most);
    __builtin_memcpy(scale, &scales.bf16, sizeof scales.bf16);
    return scales.inverse;
  }
  [[gnu::always_inline]] static float read(const unsigned char* scale) {
    std::uint16_t bf16;
    __builtin_memcpy(&bf16, scale, sizeof bf16);
    return as_float(std::uint32_t{bf16} << 16);
  }
};

struct Int8 {
  static constexpr size_t kBlock = 128, kParts = 1, kCodeBytes = 128, kScaleBytes = 2;
  using Code = std::int8_t;
  using Scale = UpScale<127>;
  [[gnu::always_inline]] static void encode(Code* codes, unsigned char* scale,
                                            const Loose<float>* x) {
    const float inverse = Scale::write(scale, largest<kBlock>(x));
    if (inverse == 0) return static_cast<void>(__builtin_memset(codes, 0, kCodeBytes));
    ANYCCL_APART
    for (size_t i = 0; i < kBlock; ++i) codes[i] = static_cast<Code>(nearest(x[i] * inverse));
  }
  template <size_t>
  [[gnu::always_inline]] static float value(const Code* codes, size_t i) {
    return static_cast<float>(codes[i]);
  }
  [[gnu::always_inline]] static float scale(const unsigned char* at) { return Scale::read(at); }
};

/// Element i is the low half of byte i, element i + 16 the high one.
struct Int4 {
  static constexpr size_t kBlock = 32, kParts = 2, kCodeBytes = 16, kScaleBytes = 2;
  using Code = std::uint8_t;
  using Scale = UpScale<7>;
  [[gnu::always_inline]] static void encode(Code* codes, unsigned char* scale,
                                            const Loose<float>* x) {
    const float inverse = Scale::write(scale, largest<kBlock>(x));
    if (inverse == 0) return static_cast<void>(__builtin_memset(codes, 0, kCodeBytes));
    ANYCCL_APART
    for (size_t i = 0; i < kCodeBytes; ++i)
      codes[i] = static_cast<Code>((nearest(x[i] * inverse) & 15) |
                                   (nearest(x[i + kCodeBytes] * inverse) & 15) << 4);
  }
  template <size_t kPart>
  [[gnu::always_inline]] static float value(const Code* codes, size_t i) {
    const std::int32_t half = kPart == 0 ? codes[i] & 15 : codes[i] >> 4;
    return static_cast<float>((half ^ 8) - 8);
  }
  [[gnu::always_inline]] static float scale(const unsigned char* at) { return Scale::read(at); }
};

// OCP Microscaling Formats (MX) 1.0: a scale of a power of two for 32 elements, a byte with the
// exponent of f32; 255 is NaN.

[[gnu::always_inline]] inline float power_of_two(const unsigned char* exponent) {
  const std::uint32_t e = *exponent;
  if (e == 255) return as_float(kNanBits);
  return as_float(e == 0 ? 1U << 22 : e << 23);
}

/// Two's complement with 6 bits behind the point; -128 is never written.
struct MxInt8 {
  static constexpr size_t kBlock = 32, kParts = 1, kCodeBytes = 32, kScaleBytes = 1;
  using Code = std::int8_t;
  [[gnu::always_inline]] static void encode(Code* codes, unsigned char* scale,
                                            const Loose<float>* x) {
    const std::uint32_t exponent = static_cast<std::uint32_t>(largest<kBlock>(x)) >> 23;
    *scale = static_cast<unsigned char>(exponent);
    if (exponent == 255) return static_cast<void>(__builtin_memset(codes, 0, kCodeBytes));
    // 2^(6 + 127 - exponent), in two factors, as there is no 2^133.
    const float first = exponent < 16 ? 0x1p32F : 1;
    const float second = as_float((6 + 254 - exponent - (exponent < 16 ? 32 : 0)) << 23);
    ANYCCL_APART
    for (size_t i = 0; i < kBlock; ++i) {
      auto code = static_cast<std::int32_t>(nearest(x[i] * first * second) - 0x4b400000U);
      code = code > 127 ? 127 : code;
      codes[i] = static_cast<Code>(code < -127 ? -127 : code);
    }
  }
  template <size_t>
  [[gnu::always_inline]] static float value(const Code* codes, size_t i) {
    return static_cast<float>(codes[i]) * 0x1p-6F;
  }
  [[gnu::always_inline]] static float scale(const unsigned char* at) { return power_of_two(at); }
};

/// OCP's floats of 8 bits, as in kernels/floats.hpp. What is too large becomes the largest number.
template <int kExponent, int kMantissa, bool kInfinities>
struct MxFloat {
  static constexpr size_t kBlock = 32, kParts = 1, kCodeBytes = 32, kScaleBytes = 1;
  using Code = std::uint8_t;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1, kDropped = 23 - kMantissa;
  /// The exponent of the largest number, and its code.
  static constexpr std::uint32_t kTop = (1 << kExponent) - 1 - (kInfinities ? 1 : 0) - kBias;
  static constexpr std::uint32_t kMost =
      kInfinities ? ((1U << kExponent) - 1) * (1 << kMantissa) - 1 : 0x7e;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;

  [[gnu::always_inline]] static void encode(Code* codes, unsigned char* scale,
                                            const Loose<float>* x) {
    const std::uint32_t exponent = static_cast<std::uint32_t>(largest<kBlock>(x)) >> 23;
    const std::uint32_t shared = exponent < kTop ? 0 : exponent - kTop;
    *scale = static_cast<unsigned char>(exponent == 255 ? 255 : shared);
    if (exponent == 255) return static_cast<void>(__builtin_memset(codes, 0, kCodeBytes));
    const float inverse = as_float((254 - shared) << 23);
    ANYCCL_APART
    for (size_t i = 0; i < kBlock; ++i) codes[i] = narrow_one(x[i] * inverse);
  }
  [[gnu::always_inline]] static Code narrow_one(float x) {
    // The number whose last place in f32 is that of the denormal codes.
    constexpr float kRounder = as_rounder();
    constexpr std::int32_t kLeastNormal = static_cast<std::int32_t>(kRebias) + (1 << 23);
    const std::uint32_t sign = as_bits(x) >> 24 & 0x80;
    const std::int32_t magnitude = magnitude_of(x);
    const auto small = static_cast<std::int32_t>(
        as_bits(as_float(static_cast<std::uint32_t>(magnitude)) + kRounder) - as_bits(kRounder));
    const std::int32_t normal = (magnitude - static_cast<std::int32_t>(kRebias) +
                                 ((1 << (kDropped - 1)) - 1) + ((magnitude >> kDropped) & 1)) >>
                                kDropped;
    std::int32_t number = magnitude < kLeastNormal ? small : normal;
    number = number > static_cast<std::int32_t>(kMost) ? static_cast<std::int32_t>(kMost) : number;
    return static_cast<Code>(sign | static_cast<std::uint32_t>(number));
  }
  template <size_t>
  [[gnu::always_inline]] static float value(const Code* codes, size_t i) {
    const std::int32_t code = codes[i], magnitude = code & 0x7f;
    const auto sign = static_cast<std::uint32_t>(code & 0x80) << 24;
    const float small = static_cast<float>(magnitude) * kLastPlace;
    const std::uint32_t normal = (static_cast<std::uint32_t>(magnitude) << kDropped) + kRebias;
    std::uint32_t bits = magnitude < 1 << kMantissa ? as_bits(small) : normal;
    if (kInfinities)
      bits = magnitude == static_cast<std::int32_t>(kMost) + 1 ? kInfinityBits : bits;
    constexpr auto kNotNan = static_cast<std::int32_t>(kMost) + (kInfinities ? 1 : 0);
    bits = magnitude > kNotNan ? kNanBits : bits;
    return as_float(sign | bits);
  }
  [[gnu::always_inline]] static float scale(const unsigned char* at) { return power_of_two(at); }

 private:
  static constexpr float power(int exponent) {
    float x = 1;
    for (; exponent > 0; --exponent) x *= 2;
    for (; exponent < 0; ++exponent) x /= 2;
    return x;
  }
  static constexpr int kLastExponent = 1 - kBias - kMantissa;
  static constexpr float kLastPlace = power(kLastExponent);
  static constexpr float as_rounder() { return power(kLastExponent + 23); }
};

// --- loops over blocks ---------------------------------------------------------------------------

template <typename Codec>
[[maybe_unused]] void encode_blocks(unsigned char* codes, unsigned char* scales, const float* x,
                                    size_t blocks) {
  using Code = typename Codec::Code;
  const Loose<float>* from = x;
  for (size_t b = 0; b < blocks; ++b)
    Codec::encode(reinterpret_cast<Code*>(codes + b * Codec::kCodeBytes),
                  scales + b * Codec::kScaleBytes, from + b * Codec::kBlock);
}

/// One block of each of kCount sources, in registers of the loop.
template <typename Codec, size_t kCount>
class BlockOfEach {
 public:
  using Code = typename Codec::Code;
  [[gnu::always_inline]] BlockOfEach(const CodedBlocks* from, size_t block) {
    for (size_t k = 0; k < kCount; ++k) {
      codes_[k] = reinterpret_cast<const Code*>(from[k].codes + block * Codec::kCodeBytes);
      scale_[k] = Codec::scale(from[k].scales + block * Codec::kScaleBytes);
    }
  }
  /// Adds up by the aligned tree: docs/adr/0056.
  template <size_t kPart>
  [[gnu::always_inline]] float sum(size_t i) const {
    if constexpr (kCount == 1) return at<kPart>(0, i);
    if constexpr (kCount == 2) return at<kPart>(0, i) + at<kPart>(1, i);
    if constexpr (kCount == 3) return at<kPart>(0, i) + at<kPart>(1, i) + at<kPart>(2, i);
    if constexpr (kCount == 4)
      return (at<kPart>(0, i) + at<kPart>(1, i)) + (at<kPart>(2, i) + at<kPart>(3, i));
  }

 private:
  template <size_t kPart>
  [[gnu::always_inline]] float at(size_t k, size_t i) const {
    return Codec::template value<kPart>(codes_[k], i) * scale_[k];
  }
  const Code* codes_[kCount];
  float scale_[kCount];
};

template <typename Codec, size_t kCount, size_t kPart = 0>
[[gnu::always_inline]] inline void sum_parts(Loose<float>* y,
                                             const BlockOfEach<Codec, kCount>& from) {
  constexpr size_t kPartSize = Codec::kBlock / Codec::kParts;
  if constexpr (kPart < Codec::kParts) {
    const BlockOfEach<Codec, kCount> here = from;
    ANYCCL_APART
    for (size_t i = 0; i < kPartSize; ++i)
      y[kPart * kPartSize + i] = one_nan(here.template sum<kPart>(i));
    sum_parts<Codec, kCount, kPart + 1>(y, from);
  }
}

/// The node of up to four sources, of `blocks` blocks: the code is long, so there is one copy of
/// it.
template <typename Codec>
[[gnu::noinline]] void sum_node(Loose<float>* y, const CodedBlocks* from, size_t sources,
                                size_t first, size_t blocks) {
  const auto each = [&]<size_t kCount>() __attribute__((always_inline)) {
    for (size_t b = 0; b < blocks; ++b)
      sum_parts<Codec, kCount>(y + b * Codec::kBlock, BlockOfEach<Codec, kCount>(from, first + b));
  };
  if (sources == 1) return each.template operator()<1>();
  if (sources == 2) return each.template operator()<2>();
  if (sources == 3) return each.template operator()<3>();
  return each.template operator()<4>();
}

template <size_t kBlock>
struct OneBlock {
  float of[kBlock];
};

/// More than four sources: nodes of four, whose sums wait for those to their right.
template <size_t kBlock, typename Node>
[[gnu::always_inline]] inline void sum_many(Loose<float>* y, size_t sources, const Node& node) {
  OneBlock<kBlock> waiting[33];  // as many as a number has ones, and one more
  size_t count = 0;
  const auto join = [&](Loose<float> * to) __attribute__((always_inline)) {
    const float *const left = waiting[count - 2].of, *const right = waiting[count - 1].of;
    ANYCCL_APART
    for (size_t i = 0; i < kBlock; ++i) to[i] = one_nan(left[i] + right[i]);
    --count;
  };
  for (size_t k = 0; k < sources; k += 4) {
    node(waiting[count++].of, k);
    const bool is_last = sources - k <= 4;
    for (size_t number = k / 4; number % 2 != 0 && (!is_last || count > 2); number /= 2)
      join(waiting[count - 2].of);
  }
  while (count > 2) join(waiting[count - 2].of);
  join(y);
}

template <typename Codec>
[[maybe_unused]] void sum_blocks(float* y, const CodedBlocks* from, size_t sources, size_t blocks) {
  if (sources <= 4) return sum_node<Codec>(y, from, sources, 0, blocks);
  for (size_t b = 0; b < blocks; ++b)
    sum_many<Codec::kBlock>(
        y + b * Codec::kBlock, sources, [&](float* to, size_t k) __attribute__((always_inline)) {
          sum_node<Codec>(to, from + k, sources - k < 4 ? sources - k : 4, b, 1);
        });
}

}  // namespace
}  // namespace anyccl
