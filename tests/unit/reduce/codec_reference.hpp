#pragma once
// Block codecs as their definitions say, one element at a time and in f64. Nothing is taken from
// the kernels but the types.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "platform/reduce/codec.hpp"
#include "reference.hpp"

namespace anyccl::test {

using Floats = std::vector<float>;
using Payload = std::vector<std::byte>;

constexpr Codec kAllCodecs[] = {Codec::bf16,       Codec::f16,        Codec::int8, Codec::mxint8,
                                Codec::mxfp8_e4m3, Codec::mxfp8_e5m2, Codec::int4};

inline std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline float canonical(float x) {
  return std::isnan(x) ? std::bit_cast<float>(0x7fc00000) : x;
}
inline bool same(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

inline float decoded_of(DType type, Bits bits) {
  return canonical(static_cast<float>(value(format_of(type), bits)));
}

inline bool is_scaled_up(Codec codec) {
  return codec == Codec::int8 || codec == Codec::int4;
}
/// The largest code that encoding makes.
inline int most_of(Codec codec) {
  return codec == Codec::int4 ? 7 : 127;
}

/// What code `bits` stands for, without the scale.
inline double code_value(Codec codec, Bits bits) {
  switch (codec) {
    case Codec::bf16:
      return value(format_of(DType::bf16), bits);
    case Codec::f16:
      return value(format_of(DType::f16), bits);
    case Codec::int8:
      return static_cast<std::int8_t>(bits);
    case Codec::mxint8:
      return static_cast<std::int8_t>(bits) / 64.0;
    case Codec::mxfp8_e4m3:
      return value(format_of(DType::f8e4m3), bits);
    case Codec::mxfp8_e5m2:
      return value(format_of(DType::f8e5m2), bits);
    case Codec::int4:
      return static_cast<int>(bits ^ 8) - 8;
  }
  return 0;
}

inline Bits code_at(Codec codec, std::span<const std::byte> codes, std::size_t i) {
  const auto byte = [&](std::size_t at) { return static_cast<Bits>(codes[at]); };
  if (codec == Codec::bf16 || codec == Codec::f16) return byte(2 * i) | byte(2 * i + 1) << 8;
  if (codec != Codec::int4) return byte(i);
  const std::size_t block = i / 32, in_block = i % 32;
  return in_block < 16 ? byte(16 * block + in_block) & 15 : byte(16 * block + in_block - 16) >> 4;
}

inline double scale_at(Codec codec, std::span<const std::byte> scales, std::size_t block) {
  if (info_of(codec).scale_bytes == 0) return 1;
  if (is_scaled_up(codec))
    return value(format_of(DType::bf16), static_cast<Bits>(scales[2 * block]) |
                                             static_cast<Bits>(scales[2 * block + 1]) << 8);
  const int exponent = static_cast<int>(scales[block]);
  return exponent == 255 ? std::nan("") : std::ldexp(1.0, exponent - 127);
}

/// The elements of a payload, each rounded to f32 once, as a product with a scale of any bytes may
/// have to be.
inline Floats decode_slowly(Codec codec, std::span<const std::byte> payload, std::size_t count) {
  Floats y(count);
  const auto scales = payload.subspan(codes_bytes(codec, count));
  for (std::size_t i = 0; i < count; ++i)
    y[i] = canonical(static_cast<float>(code_value(codec, code_at(codec, payload, i)) *
                                        scale_at(codec, scales, i / info_of(codec).block)));
  return y;
}

/// The aligned tree over places `low` to `high`.
inline float tree(std::span<const Floats> x, std::size_t i, std::size_t low, std::size_t high) {
  if (high - low == 1) return x[low][i];
  const std::size_t left = std::bit_floor(high - low - 1);
  return canonical(tree(x, i, low, low + left) + tree(x, i, low + left, high));
}

/// The most by which an element of a block with the largest magnitude `most` is off. Infinity: any
/// value.
inline double bound_of(Codec codec, double most, double x) {
  const double exponent = most == 0 ? -127 : std::max(std::floor(std::log2(most)), -127.0);
  const auto small = [](double least) { return [least](double m) { return m < least; }; };
  switch (codec) {
    case Codec::bf16:
      return std::max(std::abs(x) / 256, 0x1p-134);
    case Codec::f16:
      return std::max(std::abs(x) / 2048, 0x1p-25);
    case Codec::int8:
      return small(0x1p-119)(most) ? most : most / 252;
    case Codec::int4:
      return small(0x1p-119)(most) ? most : most / 13.85;
    case Codec::mxint8:  // what is above 127/64 becomes that
      return std::ldexp(1.0, static_cast<int>(exponent) - 6);
    case Codec::mxfp8_e4m3:
      return std::max({std::abs(x) / 16, std::ldexp(1.0, static_cast<int>(exponent) - 8 - 10),
                       std::abs(x) > 448 * std::exp2(exponent - 8) ? most / 8 : 0.0, 0x1p-137});
    case Codec::mxfp8_e5m2:
      return std::max({std::abs(x) / 8, std::ldexp(1.0, static_cast<int>(exponent) - 15 - 17),
                       std::abs(x) > 57344 * std::exp2(exponent - 15) ? most / 8 : 0.0, 0x1p-144});
  }
  return 0;
}

/// Blocks that gradients and their mistakes make; of `count` elements, of several blocks.
enum class Blocks { normal, wide, denormal, huge, equal, zeros, infinite, nan, special };
constexpr Blocks kBlockKinds[] = {Blocks::normal,   Blocks::wide,  Blocks::denormal,
                                  Blocks::huge,     Blocks::equal, Blocks::zeros,
                                  Blocks::infinite, Blocks::nan,   Blocks::special};

inline Floats make(Blocks kind, std::size_t count, std::mt19937_64& random) {
  Floats x(count);
  std::normal_distribution<float> normal;
  for (float& one : x) {
    switch (kind) {
      case Blocks::wide:
        one = std::ldexp(normal(random), static_cast<int>(random() % 240) - 130);
        break;
      case Blocks::denormal:
        one = std::ldexp(normal(random), -120 - static_cast<int>(random() % 30));
        break;
      case Blocks::equal:
        one = random() % 2 == 0 ? 0.3F : -0.3F;
        break;
      case Blocks::zeros:
        one = random() % 2 == 0 ? 0.0F : -0.0F;
        break;
      case Blocks::special:
        one = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        break;
      default:
        one = normal(random);
    }
  }
  if (count == 0) return x;
  if (kind == Blocks::huge) x[random() % count] = 3e38F;
  if (kind == Blocks::infinite) x[random() % count] = -INFINITY;
  if (kind == Blocks::nan) x[random() % count] = std::bit_cast<float>(0xffc12345);
  return x;
}

inline Payload encoded(const CodecKernels& kernels, Codec codec, Floats x) {
  Payload payload(payload_bytes(codec, x.size()), std::byte{0xa5});
  encode(kernels, codec, {x.data(), x.size()}, payload.data());
  return payload;
}

inline Floats decoded(const CodecKernels& kernels, Codec codec,
                      const std::vector<Payload>& payloads, std::size_t count,
                      std::uint32_t divisor = 1) {
  std::vector<const std::byte*> at;
  for (const Payload& payload : payloads) at.push_back(payload.data());
  Floats y(count);
  decode(kernels, codec, at, {y.data(), count}, divisor);
  return y;
}

}  // namespace anyccl::test
