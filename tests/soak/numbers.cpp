#include "soak/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

namespace anyccl::soak {
namespace {

/// A complex integer, small enough that no type and no order of the ranks rounds.
struct Number {
  std::int64_t real = 0, imaginary = 0;
};
Number operator+(Number a, Number b) {
  return {a.real + b.real, a.imaginary + b.imaginary};
}
Number operator*(Number a, Number b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

bool is_complex(DType dtype) {
  return dtype == DType::complex64 || dtype == DType::complex128;
}
bool is_float8(DType dtype) {
  return dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
}
bool is_floating(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 ||
         dtype == DType::f64 || is_float8(dtype);
}

std::uint64_t bits_of(const Elements& e, int rank, int block, std::size_t i) {
  const auto key = static_cast<std::uint64_t>(rank) * 1009 + static_cast<std::uint64_t>(block);
  return mix(e.seed + key * 0x9E3779B97F4A7C15U + i);
}

/// What `rank` contributes to a reduction.
Number number_of(const Elements& e, int rank, int block, std::size_t i) {
  const std::uint64_t bits = bits_of(e, rank, block, i);
  const auto digit = static_cast<std::int64_t>(bits % 8);
  if (e.dtype == DType::boolean) return {digit % 2};
  switch (e.op) {
    case ReduceOp::sum:
      if (is_complex(e.dtype)) return {digit - 3, static_cast<std::int64_t>(bits >> 8) % 5};
      return {is_float8(e.dtype) ? digit % 2 : digit};
    case ReduceOp::prod:  // Real ones, as the sign of a zero depends on the order of factors.
      return {1 + digit % 2};
    case ReduceOp::avg:  // A multiple of the number of ranks, or the same on all of them.
      if (!is_float8(e.dtype)) return {e.ranks * (digit % 4)};
      return {static_cast<std::int64_t>(bits_of(e, 0, block, i) % 2)};
    case ReduceOp::land:
    case ReduceOp::lor:
    case ReduceOp::lxor:
      return {digit % 2};
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
      return {static_cast<std::int64_t>(bits)};
    default:
      return {digit};
  }
}

/// On bool, sum and max mean or, prod and min mean and.
Number combine(ReduceOp op, DType dtype, Number a, Number b) {
  const std::int64_t x = a.real, y = b.real;
  const bool is_bool = dtype == DType::boolean;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return is_bool ? Number{x | y} : a + b;
    case ReduceOp::prod:
      return is_bool ? Number{x & y} : a * b;
    case ReduceOp::max:
      return {std::max(x, y)};
    case ReduceOp::min:
      return {std::min(x, y)};
    case ReduceOp::land:
    case ReduceOp::band:
      return {x & y};
    case ReduceOp::lor:
    case ReduceOp::bor:
      return {x | y};
    default:
      return {x ^ y};
  }
}

Number reduced(const Elements& e, const Piece& piece, std::size_t i) {
  Number result = number_of(e, piece.first, piece.block, i);
  for (int rank = piece.first + 1; rank <= piece.last; ++rank)
    result = combine(e.op, e.dtype, result, number_of(e, rank, piece.block, i));
  if (e.op != ReduceOp::avg || piece.first == piece.last) return result;
  return {result.real / e.ranks, result.imaginary / e.ranks};
}

/// The bits of an exact value in a format with `mantissa` bits of fraction.
std::uint32_t float_bits(double value, int exponent_bits, int mantissa) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto steps = static_cast<std::uint32_t>((fraction * 2 - 1) * (1 << mantissa));
  return static_cast<std::uint32_t>(exponent - 1 + bias) << mantissa | steps;
}

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void store(std::byte* at, DType dtype, Number number) {
  const auto value = static_cast<double>(number.real);
  const auto imaginary = static_cast<double>(number.imaginary);
  switch (dtype) {
    case DType::f32:
      return store(at, static_cast<float>(value));
    case DType::f64:
      return store(at, value);
    case DType::f16:
      return store(at, static_cast<std::uint16_t>(float_bits(value, 5, 10)));
    case DType::bf16:
      return store(at, static_cast<std::uint16_t>(float_bits(value, 8, 7)));
    case DType::f8e4m3:
      return store(at, static_cast<std::uint8_t>(float_bits(value, 4, 3)));
    case DType::f8e5m2:
      return store(at, static_cast<std::uint8_t>(float_bits(value, 5, 2)));
    case DType::complex64:
      return store(at, std::complex<float>(std::complex<double>(value, imaginary)));
    case DType::complex128:
      return store(at, std::complex<double>(value, imaginary));
    default:  // An integer, whose low bytes come first.
      std::memcpy(at, &number.real, bytes_of(dtype));
  }
}

}  // namespace

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

std::size_t bytes_of(DType dtype) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 1, 8, 16};
  return kBytes[static_cast<std::size_t>(dtype)];
}

bool is_defined(ReduceOp op, DType dtype) {
  if (is_complex(dtype)) return op == ReduceOp::sum || op == ReduceOp::prod || op == ReduceOp::avg;
  if (op == ReduceOp::avg) return dtype != DType::boolean;
  return op < ReduceOp::land || !is_floating(dtype);
}

void write(const Elements& e, const Piece& piece, std::byte* buffer) {
  const std::size_t size = bytes_of(e.dtype);
  std::byte* at = buffer + piece.at * size;
  for (std::size_t i = 0; i < piece.count; ++i, at += size) {
    if (e.reduces) {
      store(at, e.dtype, reduced(e, piece, i));
    } else {
      const std::uint64_t bits = bits_of(e, piece.first, piece.block, i);
      const std::uint64_t both[] = {bits, ~bits};
      std::memcpy(at, both, size);
    }
  }
}

}  // namespace anyccl::soak
