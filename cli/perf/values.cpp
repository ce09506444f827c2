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

void store(anycclDataType_t type, WholeNumber number, std::byte* at) {
  const std::int64_t value = number.real;
  const auto as_float = static_cast<float>(value);
  switch (type) {
    case anycclFloat32:
      return put(at, as_float);
    case anycclFloat64:
      return put(at, static_cast<double>(value));
    case anycclComplexFloat:
      return put(at, as_float), put(at + 4, static_cast<float>(number.imaginary));
    case anycclComplexDouble:
      return put(at, static_cast<double>(value)),
             put(at + 8, static_cast<double>(number.imaginary));
    case anycclInt64:
    case anycclUint64:
      return put(at, value);
    case anycclInt16:
    case anycclUint16:
      return put(at, static_cast<std::uint16_t>(value));
    case anycclInt8:
    case anycclUint8:
    case anycclBool:
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
      return put(at, static_cast<std::int32_t>(value));
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

std::size_t Elements::count_wrong(const void* data, std::size_t first, std::size_t count,
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

Values::Kind Values::kind_of(anycclDataType_t type, anycclRedOp_t redop) {
  if (type == anycclBool || (redop >= anycclLand && redop <= anycclLxor)) return Kind::truth;
  switch (redop) {
    case anycclSum:
      return Kind::sum;
    case anycclAvg:
      return Kind::average;
    case anycclProd:
      return Kind::product;
    case anycclMax:
    case anycclMin:
      return Kind::ordered;
    default:
      return Kind::bits;
  }
}

Values::Values(const TypeName& type, anycclRedOp_t redop, int ranks)
    : type_(type), redop_(redop), kind_(kind_of(type.type, redop)), ranks_(ranks) {
  constexpr int kMostShift = 63, kMostPattern = 1000;
  const bool adds = kind_ == Kind::sum || kind_ == Kind::average;
  contributors_ = adds ? std::min(ranks, exact_limit(type.type) / 4) : 1;
  const int most = exact_limit(type.type) / contributors_;
  most_shift_ = kind_ == Kind::average ? 1 : std::min(most / 2, kMostShift);
  most_pattern_ = std::min(most - most_shift_, kMostPattern);
  if (is_unsigned(type.type)) most_pattern_ /= 2;  // they start at 0
}

std::int64_t Values::patterned(std::size_t position) const {
  return pattern(static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(most_pattern_)) +
         (is_unsigned(type_.type) ? most_pattern_ : 0);
}

/// 1, -1, 1, -1 ... of ranks that add up to 0.
int Values::balance(int rank) const {
  if (rank >= contributors_ / 2 * 2) return 0;
  return rank % 2 == 0 ? 1 : -1;
}

WholeNumber Values::summand(int rank, std::size_t position) const {
  // Both halves of a long integer are used.
  const std::int64_t unit =
      type_.type == anycclInt64 || type_.type == anycclUint64 ? (std::int64_t{1} << 33) + 1 : 1;
  const std::int64_t p = patterned(position), q = patterned(position + 1);
  if (kind_ == Kind::average) {
    if (contributors_ < ranks_) return {};  // no sum of so many is exact
    const std::int64_t b = balance(rank) + (is_unsigned(type_.type) ? 1 : 0);
    return {unit * (p + b), unit * (q + b)};
  }
  if (rank >= contributors_ && kind_ == Kind::sum) return {};
  return {unit * (p + shift(rank)), unit * (q + shift(rank))};
}

/// Rank 0 has the pattern, the others turn it: by its sign or, of complex numbers, by quarters.
WholeNumber Values::factor(int rank, std::size_t position) const {
  if (rank == 0) {
    const auto small = [&](std::size_t at) {  // not 0, which has two signs
      const int p = pattern(static_cast<std::uint32_t>(at), 3);
      return is_unsigned(type_.type) ? p + 4 : p == 0 ? 2 : p;
    };
    return {small(position), small(position + 1)};
  }
  if (is_unsigned(type_.type)) return {1, 0};
  const std::size_t turn =
      (position + static_cast<std::size_t>(rank)) % (is_complex(type_.type) ? 4 : 2);
  constexpr WholeNumber kQuarters[] = {{0, 1}, {0, -1}, {-1, 0}, {1, 0}};
  return is_complex(type_.type) ? kQuarters[turn] : WholeNumber{turn == 0 ? -1 : 1, 0};
}

WholeNumber Values::value(int rank, std::size_t position) const {
  const std::uint32_t mixed =
      (static_cast<std::uint32_t>(position) * 7 + static_cast<std::uint32_t>(rank)) * 2654435761U;
  WholeNumber number;
  switch (kind_) {
    case Kind::product:
      number = factor(rank, position);
      break;
    case Kind::bits:
      number = {mixed >> 25, 0};
      break;
    case Kind::truth:
      number = {(mixed >> 9) % 3 == 0      ? 0
                : type_.type == anycclBool ? 1
                                           : 1 + (mixed >> 20) % 3,
                0};
      break;
    default:
      number = summand(rank, position);
  }
  if (!is_complex(type_.type)) number.imaginary = 0;
  return number;
}

WholeNumber Values::combined(WholeNumber a, WholeNumber b) const {
  const std::int64_t x = a.real, y = b.real;
  switch (redop_) {
    case anycclMax:
      if (kind_ == Kind::truth) return {x != 0 || y != 0, 0};
      return {std::max(x, y), std::max(a.imaginary, b.imaginary)};
    case anycclMin:
      if (kind_ == Kind::truth) return {x != 0 && y != 0, 0};
      return {std::min(x, y), std::min(a.imaginary, b.imaginary)};
    case anycclProd:
      return {x * y - a.imaginary * b.imaginary, x * b.imaginary + a.imaginary * y};
    case anycclLand:
    case anycclBand:
      return kind_ == Kind::bits ? WholeNumber{x & y, 0} : WholeNumber{x != 0 && y != 0, 0};
    case anycclLor:
    case anycclBor:
      return kind_ == Kind::bits ? WholeNumber{x | y, 0} : WholeNumber{x != 0 || y != 0, 0};
    case anycclLxor:
    case anycclBxor:
      return kind_ == Kind::bits ? WholeNumber{x ^ y, 0} : WholeNumber{(x != 0) != (y != 0), 0};
    default:
      if (kind_ == Kind::truth) return {x != 0 || y != 0, 0};
      return {x + y, a.imaginary + b.imaginary};
  }
}

Elements Values::of(int rank) const {
  return elements([&](std::size_t position) { return value(rank, position); });
}

Elements Values::result(int ranks) const {
  return elements([&](std::size_t position) {
    WholeNumber sum = value(0, position);
    for (int rank = 1; rank < ranks; ++rank) sum = combined(sum, value(rank, position));
    if (kind_ == Kind::average) sum = {sum.real / ranks_, sum.imaginary / ranks_};
    return sum;
  });
}

template <typename ValueAt>
Elements Values::elements(ValueAt value_at) const {
  std::vector<std::byte> period(kPeriod * type_.bytes);
  for (std::size_t i = 0; i < kPeriod; ++i)
    store(type_.type, value_at(i), &period[i * type_.bytes]);
  return {std::move(period), type_.bytes};
}

}  // namespace anyccl::cli
