#include "platform/reduce/convert.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "platform/reduce/isa.hpp"
#include "platform/reduce/kernels/default_mode.hpp"

namespace anyccl {
namespace {

/// As CodecKernels counts them.
enum SmallFloat : std::size_t { kBf16 = 1, kF16 = 2 };

const CodecKernels& best_loops() {
  static const CodecKernels& best = *(*best_kernels())->codecs;  // a plan was made: there are some
  return best;
}

template <SmallFloat kType>
void widen(void* to, const void* from, std::size_t count) {
  best_loops().widen[kType](static_cast<float*>(to), from, count);
}

template <SmallFloat kType>
void narrow(void* to, const void* from, std::size_t count) {
  best_loops().narrow[kType](to, static_cast<const float*>(from), count, 1.0F);
}

template <std::size_t kType>
void widen_f8(void* to, const void* from, std::size_t count) {
  best_loops().widen_f8[kType](static_cast<float*>(to), from, count);
}

template <std::size_t kType>
void narrow_f8(void* to, const void* from, std::size_t count) {
  best_loops().narrow_f8[kType](to, static_cast<const float*>(from), count);
}

template <typename From, typename To>
void convert_each(void* to, const void* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    From x;
    std::memcpy(&x, static_cast<const std::byte*>(from) + i * sizeof x, sizeof x);
    auto y = static_cast<To>(x);
    if constexpr (std::is_floating_point_v<To>)
      if (std::isnan(y)) y = std::numeric_limits<To>::quiet_NaN();
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof y, &y, sizeof y);
  }
}

template <typename From, typename To>
void convert(void* to, const void* from, std::size_t count) {
  in_default_mode<convert_each<From, To>>(to, from, count);
}

struct Conversion {
  DType from, to;
  ConvertFn convert;
};
constexpr Conversion kConversions[] = {
    {DType::bf16, DType::f32, widen<kBf16>},
    {DType::f16, DType::f32, widen<kF16>},
    {DType::f32, DType::bf16, narrow<kBf16>},
    {DType::f32, DType::f16, narrow<kF16>},
    {DType::f8e4m3, DType::f32, widen_f8<0>},
    {DType::f8e5m2, DType::f32, widen_f8<1>},
    {DType::f32, DType::f8e4m3, narrow_f8<0>},
    {DType::f32, DType::f8e5m2, narrow_f8<1>},
    {DType::f32, DType::f64, convert<float, double>},
    {DType::f64, DType::f32, convert<double, float>},
    {DType::i8, DType::i16, convert<std::int8_t, std::int16_t>},
    {DType::i8, DType::i32, convert<std::int8_t, std::int32_t>},
    {DType::i8, DType::i64, convert<std::int8_t, std::int64_t>},
    {DType::i16, DType::i32, convert<std::int16_t, std::int32_t>},
    {DType::i16, DType::i64, convert<std::int16_t, std::int64_t>},
    {DType::i32, DType::i64, convert<std::int32_t, std::int64_t>},
    {DType::u8, DType::u16, convert<std::uint8_t, std::uint16_t>},
    {DType::u8, DType::u32, convert<std::uint8_t, std::uint32_t>},
    {DType::u8, DType::u64, convert<std::uint8_t, std::uint64_t>},
    {DType::u16, DType::u32, convert<std::uint16_t, std::uint32_t>},
    {DType::u16, DType::u64, convert<std::uint16_t, std::uint64_t>},
    {DType::u32, DType::u64, convert<std::uint32_t, std::uint64_t>},
};

}  // namespace

ConvertFn converter(DType from, DType to) {
  for (const Conversion& one : kConversions)
    if (one.from == from && one.to == to) return one.convert;
  return nullptr;
}

}  // namespace anyccl
