#pragma once
// Reductions as their definition says, one element at a time. Nothing here is fast, and nothing is
// taken from the kernels.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "platform/reduce/isa.hpp"

namespace anyccl::test {

/// Elements as they lie in memory.
using Memory = std::vector<unsigned char>;
/// One element, in the low end.
using Bits = std::uint64_t;

// --- floating-point types -----------------------------------------------------------------------

/// A sign, then exponent, then mantissa. Without infinities, the bits of all ones are the only NaN.
struct Format {
  int exponent, mantissa;
  bool infinities;
  Bits nan;

  Bits sign() const { return Bits{1} << (exponent + mantissa); }
  /// The first bits past the finite numbers: infinity, or the NaN.
  Bits past_finite() const {
    return infinities ? ((Bits{1} << exponent) - 1) << mantissa : sign() - 1;
  }
};

/// Of a floating-point type, or of the parts of a complex one.
inline Format format_of(DType type) {
  switch (type) {
    case DType::f16:
      return {5, 10, true, 0x7e00};
    case DType::bf16:
      return {8, 7, true, 0x7fc0};
    case DType::f8e4m3:
      return {4, 3, false, 0x7f};
    case DType::f8e5m2:
      return {5, 2, true, 0x7f};
    case DType::f64:
    case DType::complex128:
      return {11, 52, true, 0x7ff8000000000000};
    default:
      return {8, 23, true, 0x7fc00000};
  }
}

/// x times 2 to the `power`.
inline double scaled(double x, int power) {
  if (power < -1022) return std::ldexp(x, power);
  return x * std::bit_cast<double>(static_cast<Bits>(power + 1023) << 52);
}

/// The step between subnormal numbers, a power of two.
inline int least_step(const Format& f) {
  const int bias = (1 << (f.exponent - 1)) - 1;
  return 1 - bias - f.mantissa;
}

/// What the bits of a magnitude mean if no exponent is special.
inline double plain_value(const Format& f, Bits magnitude) {
  const auto field = static_cast<int>(magnitude >> f.mantissa);
  const Bits fraction = magnitude & ((Bits{1} << f.mantissa) - 1);
  const Bits whole = field == 0 ? fraction : fraction | Bits{1} << f.mantissa;
  return scaled(static_cast<double>(whole), std::max(field - 1, 0) + least_step(f));
}

inline double value(const Format& f, Bits bits) {
  const Bits magnitude = bits & (f.sign() - 1);
  double value = plain_value(f, magnitude);
  if (magnitude == f.past_finite()) value = f.infinities ? HUGE_VAL : NAN;
  if (magnitude > f.past_finite()) value = NAN;
  return bits == magnitude ? value : -value;
}

/// The number nearest to `x`, ties to even: numbers of its size are so many steps. Exact for
/// formats up to f32.
inline Bits nearest(const Format& f, double x) {
  if (std::isnan(x)) return f.nan;
  const double magnitude = std::abs(x);
  Bits bits = f.past_finite();
  if (magnitude < plain_value(f, bits)) {
    const bool subnormal = magnitude < plain_value(f, Bits{1} << f.mantissa);
    const int least = least_step(f), step = subnormal ? least : std::ilogb(magnitude) - f.mantissa;
    const auto steps = static_cast<Bits>(std::nearbyint(scaled(magnitude, -step)));
    bits = (static_cast<Bits>(step - least) << f.mantissa) + steps;  // may carry
  }
  if (bits == f.past_finite() && !f.infinities) return f.nan;
  return std::signbit(x) ? bits | f.sign() : bits;
}

inline float decoded(const Format& f, Bits bits, float) {
  return f.mantissa == 23 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                          : static_cast<float>(value(f, bits));
}
inline double decoded(const Format&, Bits bits, double) {
  return std::bit_cast<double>(bits);
}
inline Bits encoded(const Format& f, float value) {
  if (std::isnan(value)) return f.nan;
  return f.mantissa == 23 ? std::bit_cast<std::uint32_t>(value)
                          : nearest(f, static_cast<double>(value));
}
inline Bits encoded(const Format& f, double value) {
  return std::isnan(value) ? f.nan : std::bit_cast<Bits>(value);
}

template <typename T>
T combined(ReduceOp op, T a, T b) {
  if (op == ReduceOp::sum) return a + b;
  if (op == ReduceOp::prod) return a * b;
  if (std::isnan(a) || std::isnan(b)) return NAN;
  const bool a_is_less = a == b ? std::signbit(a) && !std::signbit(b) : a < b;
  return a_is_less == (op == ReduceOp::max) ? b : a;
}

// --- kinds of types -----------------------------------------------------------------------------

inline bool is_complex(DType type) {
  return type == DType::complex64 || type == DType::complex128;
}
inline bool is_float(DType type) {
  return type == DType::f16 || type == DType::f32 || type == DType::f64 || type == DType::bf16 ||
         type == DType::f8e4m3 || type == DType::f8e5m2;
}
inline bool is_signed(DType type) {
  return type == DType::i8 || type == DType::i16 || type == DType::i32 || type == DType::i64;
}
/// Whether there is such a reduction, in one kernel.
inline bool makes_sense(DType type, ReduceOp op) {
  if (op == ReduceOp::avg) return false;
  if (is_complex(type)) return op <= ReduceOp::prod;
  return !is_float(type) || op <= ReduceOp::min;
}

// --- reductions ---------------------------------------------------------------------------------

inline Bits bits_at(const Memory& memory, std::size_t bytes, std::size_t i) {
  Bits bits = 0;
  std::memcpy(&bits, memory.data() + i * bytes, bytes);  // Little-endian, or 8 bytes.
  return bits;
}

/// The aligned tree: T(low, high) = T(low, m) op T(m, high), where m is `low` and the largest power
/// of two below high - low. `leaf(k)` is operand k.
template <typename Leaf, typename Op>
auto tree(std::size_t low, std::size_t high, const Leaf& leaf, const Op& op) {
  if (high - low == 1) return leaf(low);
  const std::size_t middle = low + std::bit_floor(high - low - 1);
  return op(tree(low, middle, leaf, op), tree(middle, high, leaf, op));
}

template <typename T>
Bits reduced_float(DType type, ReduceOp op, std::span<const Bits> elements) {
  const Format f = format_of(type);
  return encoded(
      f, tree(
             0, elements.size(), [&](std::size_t k) { return decoded(f, elements[k], T{}); },
             [&](T a, T b) { return combined(op, a, b); }));
}

__extension__ using Wide = __int128;  // Wraps nowhere that a test goes, once cut to the type.

inline Wide whole(DType type, Bits bits) {
  const std::size_t unused = 8 * (8 - bytes_of(type));
  if (type == DType::boolean) return bits != 0;
  if (is_signed(type)) return static_cast<std::int64_t>(bits << unused) >> unused;
  return bits;
}
inline Bits cut(DType type, Wide value) {
  const std::size_t unused = 8 * (8 - bytes_of(type));
  return static_cast<Bits>(value) << unused >> unused;
}

inline Wide combined(ReduceOp op, Wide a, Wide b) {
  __extension__ using Modular = unsigned __int128;
  switch (op) {
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::prod:
      return static_cast<Wide>(static_cast<Modular>(a) * static_cast<Modular>(b));
    case ReduceOp::max:
      return a < b ? b : a;
    case ReduceOp::min:
      return a < b ? a : b;
    case ReduceOp::land:
      return a != 0 && b != 0;
    case ReduceOp::lor:
      return a != 0 || b != 0;
    case ReduceOp::lxor:
      return (a != 0) != (b != 0);
    case ReduceOp::band:
      return a & b;
    case ReduceOp::bor:
      return a | b;
    default:
      return a ^ b;
  }
}

inline Bits reduced_integer(DType type, ReduceOp op, std::span<const Bits> elements) {
  if (type == DType::boolean && op == ReduceOp::sum) op = ReduceOp::lor;
  Wide result = whole(type, elements[0]);
  for (const Bits x : elements.subspan(1)) result = combined(op, result, whole(type, x));
  return cut(type, result);
}

/// Bits of op over the bits of elements, by the tree.
inline Bits reduced(DType type, ReduceOp op, std::span<const Bits> elements) {
  if (elements.size() == 1) return elements[0];
  if (type == DType::f64) return reduced_float<double>(type, op, elements);
  if (is_float(type)) return reduced_float<float>(type, op, elements);
  return reduced_integer(type, op, elements);
}

template <typename T>
void reduce_complex(DType type, ReduceOp op, const std::vector<Memory>& sources, Memory& result) {
  const Format f = format_of(type);
  const auto part = [&](const Memory& memory, std::size_t i) {
    return decoded(f, bits_at(memory, sizeof(T), i), T{});
  };
  struct Number {
    T real, imaginary;
  };
  const auto combine = [op](Number a, Number b) {
    if (op == ReduceOp::sum) return Number{a.real + b.real, a.imaginary + b.imaginary};
    return Number{a.real * b.real - a.imaginary * b.imaginary,
                  a.real * b.imaginary + a.imaginary * b.real};
  };
  for (std::size_t i = 0; i < result.size() / sizeof(T); i += 2) {
    const auto number = [&](std::size_t k) {
      return Number{part(sources[k], i), part(sources[k], i + 1)};
    };
    const Number all = tree(0, sources.size(), number, combine);
    const Bits bits[] = {encoded(f, all.real), encoded(f, all.imaginary)};
    std::memcpy(result.data() + i * sizeof(T), &bits[0], sizeof(T));
    std::memcpy(result.data() + (i + 1) * sizeof(T), &bits[1], sizeof(T));
  }
}

inline Memory reduced(DType type, ReduceOp op, const std::vector<Memory>& sources) {
  Memory result = sources[0];
  if (sources.size() == 1) return result;
  if (type == DType::complex64) reduce_complex<float>(type, op, sources, result);
  if (type == DType::complex128) reduce_complex<double>(type, op, sources, result);
  if (is_complex(type)) return result;
  const std::size_t bytes = bytes_of(type);
  std::vector<Bits> column(sources.size());
  for (std::size_t i = 0; i < result.size() / bytes; ++i) {
    for (std::size_t k = 0; k < sources.size(); ++k) column[k] = bits_at(sources[k], bytes, i);
    const Bits bits = reduced(type, op, column);
    std::memcpy(result.data() + i * bytes, &bits, bytes);
  }
  return result;
}

/// An element, not complex, divided.
inline Bits divided(DType type, Bits bits, std::uint32_t by) {
  const Format f = format_of(type);
  if (type == DType::f64) return encoded(f, decoded(f, bits, double{}) / by);
  if (is_float(type)) return encoded(f, decoded(f, bits, float{}) / static_cast<float>(by));
  return cut(type, whole(type, bits) / by);
}

// --- inputs -------------------------------------------------------------------------------------

/// A random element of a type that is not complex: of floats often one of moderate size, so that
/// sums round; sometimes any bits at all (NaNs, infinities, denormals), sometimes zero.
inline Bits random_element(DType type, std::mt19937_64& random) {
  const Bits any = random();
  const auto kind = random() % 16;
  if (!is_float(type)) return cut(type, kind < 4 ? any % 3 - 1 : any);
  const Format f = format_of(type);
  if (kind == 0) return any & (2 * f.sign() - 1);
  if (kind == 1) return any & f.sign();
  if (kind == 2) return any & (f.sign() | ((Bits{1} << f.mantissa) - 1));  // Denormals.
  const double moderate = static_cast<double>(static_cast<std::int64_t>(any)) * 0x1p-60;
  if (type == DType::f64) return std::bit_cast<Bits>(moderate);
  return encoded(f, static_cast<float>(moderate));
}

inline Memory random_elements(DType type, std::size_t count, std::mt19937_64& random) {
  const DType part = type == DType::complex64    ? DType::f32
                     : type == DType::complex128 ? DType::f64
                                                 : type;
  Memory elements(count * bytes_of(type));
  for (std::size_t at = 0; at < elements.size(); at += bytes_of(part)) {
    const Bits bits = random_element(part, random);
    std::memcpy(elements.data() + at, &bits, bytes_of(part));
  }
  return elements;
}

// --- kernels ------------------------------------------------------------------------------------

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> all;
  for (const Isa& isa : instruction_sets())
    if (isa.supported) all.push_back(isa);
  return all;
}

inline std::vector<DType> all_types() {
  std::vector<DType> all;
  for (std::size_t type = 0; type < kDTypes; ++type) all.push_back(static_cast<DType>(type));
  return all;
}

inline const TypeKernels& kernels(const Isa& isa, DType type) {
  return isa.kernels->of[static_cast<std::size_t>(type)];
}
inline ReduceFn kernel(const Isa& isa, DType type, ReduceOp op) {
  return kernels(isa, type).reduce[static_cast<std::size_t>(op)];
}

/// The operators that `type` has a kernel for.
inline std::vector<ReduceOp> operators(const Isa& isa, DType type) {
  std::vector<ReduceOp> all;
  for (std::size_t op = 0; op < kReduceOps; ++op)
    if (kernels(isa, type).reduce[op] != nullptr) all.push_back(static_cast<ReduceOp>(op));
  return all;
}

/// What the kernel makes of these sources, which have `count` elements.
inline Memory run(const Isa& isa, DType type, ReduceOp op, const std::vector<Memory>& sources) {
  std::vector<const void*> pointers;
  for (const Memory& source : sources) pointers.push_back(source.data());
  Memory result(sources[0].size());
  kernel(isa, type, op)(result.data(), nullptr, pointers.data(), pointers.size(),
                        result.size() / bytes_of(type));
  return result;
}

/// The same for one element of at most 8 bytes.
inline Bits run(const Isa& isa, DType type, ReduceOp op, const std::vector<Bits>& elements) {
  std::vector<const void*> pointers;
  for (const Bits& element : elements) pointers.push_back(&element);
  Bits result = 0;
  kernel(isa, type, op)(&result, nullptr, pointers.data(), pointers.size(), 1);
  return result;
}

}  // namespace anyccl::test
