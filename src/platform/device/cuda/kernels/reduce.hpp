#pragma once
// Reductions on a device: what each thread of a kernel does. The results have the bits of those on
// the host.

#include "platform/device/cuda/kernels/elements.hpp"
#include "platform/device/cuda/kernels/reduce_args.hpp"

namespace anyccl::kernels {

// --- operators -----------------------------------------------------------------------------------

/// Whether T has no fractions; then sums and products wrap.
template <typename T>
constexpr bool kIsWhole = static_cast<T>(0.5) == static_cast<T>(0);

struct Sum {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    if constexpr (kIsWhole<T>) return static_cast<T>(static_cast<U64>(a) + static_cast<U64>(b));
    return static_cast<T>(a + b);
  }
};

struct Product {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    if constexpr (kIsWhole<T>) return static_cast<T>(static_cast<U64>(a) * static_cast<U64>(b));
    return static_cast<T>(a * b);
  }
};

/// Whether a < b, with -0 before +0.
template <typename T>
ANYCCL_ON_DEVICE inline bool is_below(T a, T b) {
  return a < b;
}
ANYCCL_ON_DEVICE inline bool is_below(float a, float b) {
  return a < b || (a == b && bits_of(a) >> 31 > bits_of(b) >> 31);
}
ANYCCL_ON_DEVICE inline bool is_below(double a, double b) {
  return a < b || (a == b && __builtin_bit_cast(U64, a) >> 63 > __builtin_bit_cast(U64, b) >> 63);
}

struct Largest {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    if (a != a || b != b) return a != a ? a : b;
    return is_below(a, b) ? b : a;
  }
};

struct Smallest {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    if (a != a || b != b) return a != a ? a : b;
    return is_below(b, a) ? b : a;
  }
};

struct LogicalAnd {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    return static_cast<T>(a != 0 && b != 0);
  }
};
struct LogicalOr {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    return static_cast<T>(a != 0 || b != 0);
  }
};
struct LogicalXor {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};
struct BitwiseAnd {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct SumOfParts {
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
};

struct ProductOfParts {
  /// The plain formula, each product and sum rounded.
  template <typename T>
  ANYCCL_ON_DEVICE static T of(T a, T b) {
    return {a.real * b.real + a.imaginary * -b.imaginary,
            a.imaginary * b.real + a.real * b.imaginary};
  }
};

/// A sum that is divided before it is rounded to the type. Integers are truncated.
struct Average : Sum {
  template <typename T>
  ANYCCL_ON_DEVICE static T divide(T sum, U32 divisor) {
    if constexpr (!kIsWhole<T>) return sum / static_cast<T>(divisor);
    if constexpr (kIsWhole<T> && sizeof(T) == 8 && static_cast<T>(-1) > static_cast<T>(0))
      return sum / divisor;
    return static_cast<T>(static_cast<long long>(sum) / static_cast<long long>(divisor));
  }
};

struct AverageOfParts : SumOfParts {
  template <typename T>
  ANYCCL_ON_DEVICE static T divide(T sum, U32 divisor) {
    return {Average::divide(sum.real, divisor), Average::divide(sum.imaginary, divisor)};
  }
};

// --- loops ---------------------------------------------------------------------------------------

ANYCCL_ON_DEVICE inline const void* source_of(const ReduceArgs& args, U32 k) {
  return args.src[k];
}

/// Folds element `i` of all sources by the aligned tree over their numbers (docs/adr/0056). Of the
/// sums that wait for sources to their right, `level[l]` is that of 2^l sources.
template <typename Type, typename Operator, typename Args>
ANYCCL_ON_DEVICE inline typename Type::Bits fold(const Args& args, U64 i) {
  using Bits = typename Type::Bits;
  typename Type::Value level[4] = {};
  static_assert(ReduceArgs::kMostSources < 16, "four levels are enough");
  for (U32 k = 0; k < args.sources; ++k) {
    auto value = Type::widen(static_cast<const Bits*>(source_of(args, k))[i]);
    U32 l = 0;
    for (; (k >> l & 1) != 0; ++l) value = Operator::of(level[l], value);
    level[l] = value;
  }
  U32 l = 0;
  while ((args.sources >> l & 1) == 0) ++l;
  auto all = level[l];
  for (++l; l < 4; ++l)
    if ((args.sources >> l & 1) != 0) all = Operator::of(level[l], all);
  if constexpr (requires { Operator::divide(all, args.divisor); })
    all = Operator::divide(all, args.divisor);
  return Type::narrow(all);
}

/// Does the elements from `first` on, each `step`-th.
template <typename Type, typename Operator, typename Args>
ANYCCL_ON_DEVICE inline void reduce(const Args& args, U64 first, U64 step) {
  auto* const dst = static_cast<typename Type::Bits*>(args.dst);
  for (U64 i = first; i < args.count; i += step) dst[i] = fold<Type, Operator>(args, i);
}

}  // namespace anyccl::kernels

// For a type and its name, as messages have it: X(type, Type, operator, Operator) for each kernel.
#define ANYCCL_OPERATORS_OF_NUMBERS(X, type, Type) \
  X(type, Type, sum, Sum)                          \
  X(type, Type, prod, Product)                     \
  X(type, Type, max, Largest)                      \
  X(type, Type, min, Smallest)                     \
  X(type, Type, avg, Average)
#define ANYCCL_OPERATORS_OF_INTEGERS(X, type, Type) \
  ANYCCL_OPERATORS_OF_NUMBERS(X, type, Type)        \
  X(type, Type, land, LogicalAnd)                   \
  X(type, Type, lor, LogicalOr)                     \
  X(type, Type, lxor, LogicalXor)                   \
  X(type, Type, band, BitwiseAnd)                   \
  X(type, Type, bor, BitwiseOr)                     \
  X(type, Type, bxor, BitwiseXor)
// All are logical: a sum is "or", a product is "and".
#define ANYCCL_OPERATORS_OF_TRUTH(X, type, Type) \
  X(type, Type, sum, LogicalOr)                  \
  X(type, Type, prod, LogicalAnd)                \
  X(type, Type, max, LogicalOr)                  \
  X(type, Type, min, LogicalAnd)                 \
  X(type, Type, land, LogicalAnd)                \
  X(type, Type, lor, LogicalOr)                  \
  X(type, Type, lxor, LogicalXor)                \
  X(type, Type, band, LogicalAnd)                \
  X(type, Type, bor, LogicalOr)                  \
  X(type, Type, bxor, LogicalXor)
#define ANYCCL_OPERATORS_OF_COMPLEX(X, type, Type) \
  X(type, Type, sum, SumOfParts)                   \
  X(type, Type, prod, ProductOfParts)              \
  X(type, Type, avg, AverageOfParts)

// X as above for the kernels of one type.
#define ANYCCL_KERNELS_i8(X) \
  ANYCCL_OPERATORS_OF_INTEGERS(X, i8, anyccl::kernels::Whole<signed char>)
#define ANYCCL_KERNELS_u8(X) \
  ANYCCL_OPERATORS_OF_INTEGERS(X, u8, anyccl::kernels::Whole<anyccl::kernels::U8>)
#define ANYCCL_KERNELS_i32(X) ANYCCL_OPERATORS_OF_INTEGERS(X, i32, anyccl::kernels::Whole<int>)
#define ANYCCL_KERNELS_u32(X) \
  ANYCCL_OPERATORS_OF_INTEGERS(X, u32, anyccl::kernels::Whole<anyccl::kernels::U32>)
#define ANYCCL_KERNELS_i64(X) \
  ANYCCL_OPERATORS_OF_INTEGERS(X, i64, anyccl::kernels::Whole<long long>)
#define ANYCCL_KERNELS_u64(X) \
  ANYCCL_OPERATORS_OF_INTEGERS(X, u64, anyccl::kernels::Whole<anyccl::kernels::U64>)
#define ANYCCL_KERNELS_f16(X) ANYCCL_OPERATORS_OF_NUMBERS(X, f16, anyccl::kernels::F16)
#define ANYCCL_KERNELS_f32(X) ANYCCL_OPERATORS_OF_NUMBERS(X, f32, anyccl::kernels::F32)
#define ANYCCL_KERNELS_f64(X) ANYCCL_OPERATORS_OF_NUMBERS(X, f64, anyccl::kernels::F64)
#define ANYCCL_KERNELS_bf16(X) ANYCCL_OPERATORS_OF_NUMBERS(X, bf16, anyccl::kernels::Bf16)
#define ANYCCL_KERNELS_f8e4m3(X) ANYCCL_OPERATORS_OF_NUMBERS(X, f8e4m3, anyccl::kernels::F8E4M3)
#define ANYCCL_KERNELS_f8e5m2(X) ANYCCL_OPERATORS_OF_NUMBERS(X, f8e5m2, anyccl::kernels::F8E5M2)
#define ANYCCL_KERNELS_i16(X) ANYCCL_OPERATORS_OF_INTEGERS(X, i16, anyccl::kernels::Whole<short>)
#define ANYCCL_KERNELS_u16(X) \
  ANYCCL_OPERATORS_OF_INTEGERS(X, u16, anyccl::kernels::Whole<anyccl::kernels::U16>)
#define ANYCCL_KERNELS_bool(X) ANYCCL_OPERATORS_OF_TRUTH(X, bool, anyccl::kernels::Truth)
#define ANYCCL_KERNELS_complex64(X) \
  ANYCCL_OPERATORS_OF_COMPLEX(X, complex64, anyccl::kernels::Complex<anyccl::kernels::F32>)
#define ANYCCL_KERNELS_complex128(X) \
  ANYCCL_OPERATORS_OF_COMPLEX(X, complex128, anyccl::kernels::Complex<anyccl::kernels::F64>)
