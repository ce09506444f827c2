#include "perf/values.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace anyccl::cli {
namespace {

constexpr std::size_t kPeriod = 4099;    // Prime, so no chunk or block is a multiple of it.
constexpr std::size_t kTurnStep = 1009;  // How far each turn starts from the last.

/// Whole numbers up to this one are exact in the type.
int exact_limit(anycclDataType_t type) {
  switch (type) {
    case anycclInt8:
      return 127;
    case anycclUint8:
      return 255;
    case anycclInt16:
      return 32767;
    case anycclUint16:
      return 65535;
    case anycclBfloat16:
      return 1 << 8;
    case anycclFloat16:
      return 1 << 11;
    case anycclFloat8e4m3:
      return 1 << 4;
    case anycclFloat8e5m2:
      return 1 << 3;
    default:
      return 1 << 24;
  }
}

bool is_unsigned(anycclDataType_t type) {
  return type == anycclUint8 || type == anycclUint16 || type == anycclUint32 ||
         type == anycclUint64;
}

/// A whole number in [-most, most]; neighbours, near and far, differ.
int pattern(std::uint32_t position, std::uint32_t most) {
  const std::uint32_t mixed = position * 2654435761U;  // Knuth's multiplicative hash
  return static_cast<int>((mixed >> 16) * (2 * most + 1) >> 16) - static_cast<int>(most);
}

template <typename Stored>
void put(std::byte* at, Stored stored) {
  std::memcpy(at, &stored, sizeof stored);
}

/// The bits of a whole number in a float of this layout: f32's sign, exponent less the difference
/// of the biases, and upper mantissa.
std::uint32_t narrow(float value, int exponent_bits, int mantissa_bits) {
  const std::uint32_t bias = (1U << (exponent_bits - 1)) - 1;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31, magnitude = bits & 0x7fffffff;
  const std::uint32_t rebased = magnitude == 0 ? 0 : magnitude - ((127U - bias) << 23);
  return sign << (exponent_bits + mantissa_bits) | rebased >> (23 - mantissa_bits);
}

void store(anycclDataType_t type, int value, std::byte* at) {
  const auto as_float = static_cast<float>(value);
  constexpr std::int64_t kBothHalves = (std::int64_t{1} << 33) + 1;
  switch (type) {
    case anycclFloat32:
      return put(at, as_float);
    case anycclFloat64:
      return put(at, static_cast<double>(value));
    case anycclInt64:
    case anycclUint64:
      return put(at, value * kBothHalves);
    case anycclInt16:
    case anycclUint16:
      return put(at, static_cast<std::uint16_t>(value));
    case anycclInt8:
    case anycclUint8:
      return put(at, static_cast<std::uint8_t>(value));
    case anycclFloat16:
      return put(at, static_cast<std::uint16_t>(narrow(as_float, 5, 10)));
    case anycclBfloat16:
      return put(at, static_cast<std::uint16_t>(narrow(as_float, 8, 7)));
    case anycclFloat8e4m3:
      return put(at, static_cast<std::uint8_t>(narrow(as_float, 4, 3)));
    case anycclFloat8e5m2:
      return put(at, static_cast<std::uint8_t>(narrow(as_float, 5, 2)));
    default:
      return put(at, std::int32_t{value});
  }
}

/// Calls visit(offset in the buffer, offset in twice_, elements) for each piece of at most a
/// period.
template <typename Visit>
void for_each_piece(std::size_t first, std::size_t count, std::uint32_t turn, Visit visit) {
  const std::size_t start = (first + turn * kTurnStep) % kPeriod;
  for (std::size_t done = 0; done < count; done += kPeriod)
    visit(done, start, std::min(kPeriod, count - done));
}

}  // namespace

Elements::Elements(std::vector<std::byte> period, std::size_t element_bytes)
    : twice_(std::move(period)), element_bytes_(element_bytes) {
  twice_.reserve(2 * twice_.size());
  twice_.insert(twice_.end(), twice_.begin(), twice_.end());
}

void Elements::write(void* data, std::size_t first, std::size_t count, std::uint32_t turn) const {
  auto* const out = static_cast<std::byte*>(data);
  for_each_piece(first, count, turn, [&](std::size_t to, std::size_t from, std::size_t elements) {
    std::memcpy(out + to * element_bytes_, &twice_[from * element_bytes_],
                elements * element_bytes_);
  });
}

std::size_t Elements::wrong(const void* data, std::size_t first, std::size_t count,
                            std::uint32_t turn) const {
  const auto* const got = static_cast<const std::byte*>(data);
  std::size_t differ = 0;
  for_each_piece(first, count, turn, [&](std::size_t to, std::size_t from, std::size_t elements) {
    const std::byte* const piece = got + to * element_bytes_;
    const std::byte* const right = &twice_[from * element_bytes_];
    if (std::memcmp(piece, right, elements * element_bytes_) == 0) return;
    for (std::size_t i = 0; i < elements * element_bytes_; i += element_bytes_)
      differ += std::memcmp(piece + i, right + i, element_bytes_) != 0;
  });
  return differ;
}

Values::Values(const TypeName& type, int summands)
    : type_(type), contributors_(std::min(summands, exact_limit(type.type) / 4)) {
  constexpr int kMostShift = 63, kMostPattern = 1000;
  const int most = exact_limit(type.type) / contributors_;
  most_shift_ = std::min(most / 2, kMostShift);
  most_pattern_ = std::min(most - most_shift_, kMostPattern);
  if (is_unsigned(type.type)) most_pattern_ /= 2;  // they start at 0
}

Elements Values::of(int rank) const {
  return elements(scale(rank), shift(rank));
}

Elements Values::sum(int ranks) const {
  const int contributors = std::min(ranks, contributors_);
  int offset = 0;
  for (int rank = 0; rank < contributors; ++rank) offset += shift(rank);
  return elements(contributors, offset);
}

Elements Values::max(int ranks) const {
  return elements(1, std::min(ranks - 1, most_shift_));
}

Elements Values::min() const {
  return elements(1, 0);
}

Elements Values::elements(int scale, int offset) const {
  std::vector<std::byte> period(kPeriod * type_.bytes);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const int value =
        pattern(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(most_pattern_)) +
        (is_unsigned(type_.type) ? most_pattern_ : 0);
    store(type_.type, scale * value + offset, &period[i * type_.bytes]);
  }
  return {std::move(period), type_.bytes};
}

}  // namespace anyccl::cli
