// Reductions of several sources into one destination, for one instruction set: compiled several
// times, with ANYCCL_KERNELS the name of the table and ANYCCL_VECTOR_BYTES the width to work in.
//
// Everything here and in kernels/ is in an anonymous namespace and nothing else with inline
// functions is included (but intrinsics, which are always inlined), because a weak symbol from here
// could replace the baseline copy in the whole program.

#include "platform/reduce/kernels.hpp"

#include "platform/reduce/kernels/complex.hpp"
#include "platform/reduce/kernels/copy_ahead.hpp"
#include "platform/reduce/kernels/default_mode.hpp"
#include "platform/reduce/kernels/floats.hpp"
#include "platform/reduce/kernels/integers.hpp"
#include "platform/reduce/kernels/loops.hpp"
#include "platform/reduce/kernels/order.hpp"
#include "platform/reduce/kernels/sparse.hpp"

#if !defined(ANYCCL_BF16_ALONE)
// codec_kernels.cpp has it, for the same instruction set.
extern "C" const anyccl::CodecKernels ANYCCL_CODEC_KERNELS;
#endif

namespace anyccl {
namespace {

/// Common types and operators get fast loops, the others little code.
enum class Use { often, seldom };

template <Use kUse, typename Type, typename Operator>
constexpr ReduceFn kernel() {
  if constexpr (kUse == Use::often)
    return by_sources<Reduction<Type, Operator>>;
  else
    return any_sources<Reduction<Type, Operator>>;
}

// Rows are in the order of ReduceOp: sum, prod, max, min, avg, land, lor, lxor, band, bor, bxor.

template <typename T, typename Wide, Use kUse>
constexpr TypeKernels integer() {
  using U = Unsigned<sizeof(T)>;
  constexpr Use kSeldom = Use::seldom;
  using Byte = Integer<std::uint8_t>;  // Bits have no neighbours.
  return {{kernel<kUse, Integer<U>, Plus>(), kernel<kSeldom, Integer<U>, Times>(),
           kernel<kUse, Integer<T>, Larger>(), kernel<kUse, Integer<T>, Smaller>(), nullptr,
           kernel<kSeldom, Truth<U>, And>(), kernel<kSeldom, Truth<U>, Or>(),
           kernel<kSeldom, Truth<U>, Xor>(), in_parts<sizeof(T), kernel<kSeldom, Byte, And>()>,
           in_parts<sizeof(T), kernel<kSeldom, Byte, Or>()>,
           in_parts<sizeof(T), kernel<kSeldom, Byte, Xor>()>},
          divide_integers<T, Wide>};
}

/// All operators are logical ones.
[[maybe_unused]] constexpr TypeKernels boolean() {
  using Bool = Truth<std::uint8_t>;
  constexpr ReduceFn kAnd = kernel<Use::seldom, Bool, And>(), kOr = kernel<Use::seldom, Bool, Or>(),
                     kXor = kernel<Use::seldom, Bool, Xor>();
  return {{kOr, kAnd, kOr, kAnd, nullptr, kAnd, kOr, kXor, kAnd, kOr, kXor}, nullptr};
}

template <typename Type, Use kUse>
constexpr TypeKernels floating() {
  return {{in_default_mode<kernel<kUse, Type, Plus>()>,
           in_default_mode<kernel<Use::seldom, Type, Times>()>,
           kernel<kUse, Keys<Type, true>, Larger>(), kernel<kUse, Keys<Type, false>, Smaller>()},
          in_default_mode<divide_floats<Type, 1>>};
}

template <typename Part>
constexpr TypeKernels complex() {
  constexpr ReduceFn kSumOfParts = kernel<Use::often, Part, Plus>();
  return {{in_default_mode<in_parts<2, kSumOfParts>>,
           in_default_mode<kernel<Use::seldom, Complex<Part>, Times>()>},
          in_default_mode<divide_floats<Part, 2>>};
}

#if defined(ANYCCL_BF16_ALONE)
// isa.cpp takes the other types from x86-64-v4: the code would be the same.
constexpr KernelTable bf16_alone() {
  KernelTable table{};
  table.of[static_cast<size_t>(DType::bf16)] = floating<Bf16, Use::often>();
  return table;
}
constexpr KernelTable kTable = bf16_alone();
#else
constexpr SparseKernels kSparse = {
    mark_larger,
    in_default_mode<accumulate_momentum>,
    {in_default_mode<take_marked<SparseF32>>, in_default_mode<take_marked<SparseBf16>>,
     in_default_mode<take_marked<SparseF16>>},
    {in_default_mode<add_marked<SparseF32>>, in_default_mode<add_marked<SparseBf16>>,
     in_default_mode<add_marked<SparseF16>>}};
// clang-format off
constexpr KernelTable kTable = {copy_ahead, kSparse, &ANYCCL_CODEC_KERNELS, {
    integer<std::int8_t, std::int64_t, Use::seldom>(),
    integer<std::uint8_t, std::int64_t, Use::seldom>(),
    integer<std::int32_t, std::int64_t, Use::often>(),
    integer<std::uint32_t, std::int64_t, Use::seldom>(),
    integer<std::int64_t, std::int64_t, Use::often>(),
    integer<std::uint64_t, std::uint64_t, Use::seldom>(),
    floating<F16, Use::often>(),
    floating<F32, Use::often>(),
    floating<F64, Use::often>(),
    floating<Bf16, Use::often>(),
    floating<F8E4M3, Use::seldom>(),
    floating<F8E5M2, Use::seldom>(),
    integer<std::int16_t, std::int64_t, Use::seldom>(),
    integer<std::uint16_t, std::int64_t, Use::seldom>(),
    boolean(),
    complex<F32>(),
    complex<F64>(),
}};
// clang-format on
#endif

}  // namespace
}  // namespace anyccl

extern "C" {
extern const anyccl::KernelTable ANYCCL_KERNELS;
const anyccl::KernelTable ANYCCL_KERNELS = anyccl::kTable;
}
