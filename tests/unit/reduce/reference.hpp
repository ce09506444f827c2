#pragma once
// Reductions as their definition says, one element at a time, on the bits of the elements.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "platform/reduce/isa.hpp"

namespace anyccl::test {

inline constexpr std::uint32_t kNanF32 = 0x7fc00000;
inline constexpr std::uint16_t kNanBf16 = 0x7fc0;

inline float f32(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline float bf16(std::uint64_t bits) {
  return f32(static_cast<std::uint32_t>(bits) << 16);
}

/// The bf16 nearest to `value`, found by comparing the distances to the two around it.
inline std::uint16_t nearest_bf16(float value) {
  if (std::isnan(value)) return kNanBf16;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto below = static_cast<std::uint16_t>(bits >> 16);  // Towards zero.
  const auto above = static_cast<std::uint16_t>(below + 1);
  if (std::isinf(value)) return below;
  const auto magnitude = [](std::uint16_t b) {
    return std::isinf(bf16(b)) ? std::ldexp(1.0, 128) : std::abs(static_cast<double>(bf16(b)));
  };
  const double to_below = std::abs(static_cast<double>(value)) - magnitude(below);
  const double to_above = magnitude(above) - std::abs(static_cast<double>(value));
  if (to_below != to_above) return to_below < to_above ? below : above;
  return below % 2 == 0 ? below : above;
}

inline float larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return f32(kNanF32);
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

/// Bits of op over elements given by their bits (in the low end of each word), in order.
inline std::uint64_t reference(DType dtype, ReduceOp op, std::span<const std::uint64_t> elements) {
  const bool sum = op == ReduceOp::sum;
  if (elements.size() == 1) return elements[0];
  if (dtype == DType::i64) {
    std::uint64_t result = elements[0];
    for (const std::uint64_t x : elements.subspan(1)) {
      const bool more = static_cast<std::int64_t>(x) > static_cast<std::int64_t>(result);
      result = sum ? result + x : more ? x : result;
    }
    return result;
  }
  const bool wide = dtype == DType::f32;
  const auto value = [&](std::uint64_t bits) {
    return wide ? f32(static_cast<std::uint32_t>(bits)) : bf16(bits);
  };
  float result = value(elements[0]);
  for (const std::uint64_t x : elements.subspan(1))
    result = sum ? result + value(x) : larger(result, value(x));
  if (!wide) return nearest_bf16(result);
  return std::isnan(result) ? kNanF32 : std::bit_cast<std::uint32_t>(result);
}

/// A random element: often of moderate size, so that sums round; sometimes any bits at all (NaNs,
/// infinities, denormals), sometimes zero of either sign.
inline std::uint64_t random_element(DType dtype, std::mt19937_64& random) {
  const std::uint64_t any = random();
  const auto kind = random() % 16;
  if (dtype == DType::i64) return kind == 0 ? any % 3 - 1 : any;
  const bool wide = dtype == DType::f32;
  const std::uint64_t mask = wide ? 0xffffffff : 0xffff;
  const std::uint64_t sign = wide ? 0x80000000 : 0x8000;
  if (kind == 0) return any & mask;
  if (kind == 1) return any & sign;
  if (kind == 2) return any & (wide ? 0x807fffff : 0x807f);  // Denormals.
  const float moderate = static_cast<float>(static_cast<std::int64_t>(any)) * 0x1p-60F;
  return wide ? std::bit_cast<std::uint32_t>(moderate) : nearest_bf16(moderate);
}

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> all;
  for (const Isa& isa : instruction_sets())
    if (isa.supported) all.push_back(isa);
  return all;
}

inline ReduceFn kernel(const Isa& isa, DType dtype, ReduceOp op) {
  for (const Kernel& k : std::span(isa.kernels->first, isa.kernels->count))
    if (k.dtype == dtype && k.op == op) return k.run;
  return nullptr;
}

}  // namespace anyccl::test
