// Reductions of several sources into one destination, for one instruction set: compiled several
// times, with ANYCCL_KERNELS the name of the table and ANYCCL_VECTOR_BYTES the width to work in.
//
// Everything is in an anonymous namespace and nothing with inline functions is included, because a
// weak symbol from here could replace the baseline copy in the whole program.

#include "platform/reduce/kernels.hpp"

#include <cstddef>
#include <cstdint>

namespace anyccl {
namespace {

using std::size_t;
using Bytes = const unsigned char*;
constexpr size_t kVector = ANYCCL_VECTOR_BYTES;

// --- vectors ------------------------------------------------------------------------------------
// Blocks shorter than 16 bytes use the front of a 16-byte vector, whose other lanes are zero.

template <typename T, size_t kBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes < 16 ? 16 : kBytes)));
};
template <typename T, size_t kBytes>
using Vector = typename VectorOf<T, kBytes>::type;

template <size_t kBytes>
struct WordOf;
// clang-format off
template <> struct WordOf<2> { using type = std::uint16_t; };
template <> struct WordOf<4> { using type = std::uint32_t; };
template <> struct WordOf<8> { using type = std::uint64_t; };
// clang-format on

template <typename T, size_t kBytes>
[[gnu::always_inline]] inline Vector<T, kBytes> load(Bytes from) {
  if constexpr (kBytes >= 16) {
    Vector<T, kBytes> vector;
    __builtin_memcpy(&vector, from, kBytes);
    return vector;
  } else {
    typename WordOf<kBytes>::type word;
    __builtin_memcpy(&word, from, kBytes);
    return reinterpret_cast<Vector<T, kBytes>>(Vector<std::uint64_t, 16>{word, 0});
  }
}

template <size_t kBytes, typename V>
[[gnu::always_inline]] inline void store(unsigned char* to, V vector) {
  if constexpr (kBytes >= 16) {
    __builtin_memcpy(to, &vector, kBytes);
  } else {
    const auto word = static_cast<typename WordOf<kBytes>::type>(
        reinterpret_cast<Vector<std::uint64_t, 16>>(vector)[0]);
    __builtin_memcpy(to, &word, kBytes);
  }
}

// --- operations ---------------------------------------------------------------------------------
// Op<kBytes> starts with a block of the first source, takes in one block of each other source, and
// gives the block of the result.

template <size_t kBytes>
class SumF32 {
 public:
  static constexpr size_t kElement = 4;
  [[gnu::always_inline]] explicit SumF32(Bytes first) : sum_(load<float, kBytes>(first)) {}
  [[gnu::always_inline]] void take(Bytes next) { sum_ += load<float, kBytes>(next); }
  /// The payload and sign of a NaN depend on the order of operands in the instruction: unify them.
  [[gnu::always_inline]] auto result() const {
    using I = Vector<std::int32_t, kBytes>;
    return sum_ != sum_ ? I{} + 0x7fc00000 : reinterpret_cast<I>(sum_);
  }

 private:
  Vector<float, kBytes> sum_;
};

/// Two neighbours share a 32-bit word, and one is widened by a shift, the other by a mask.
template <size_t kBytes>
class SumBf16 {
  using Words = Vector<std::uint32_t, kBytes>;
  using Floats = Vector<float, kBytes>;

 public:
  static constexpr size_t kElement = 2;
  [[gnu::always_inline]] explicit SumBf16(Bytes first) {
    const Words words = load<std::uint32_t, kBytes>(first);
    low_ = low(words);
    high_ = high(words);
  }
  [[gnu::always_inline]] void take(Bytes next) {
    const Words words = load<std::uint32_t, kBytes>(next);
    low_ += low(words);
    high_ += high(words);
  }
  [[gnu::always_inline]] Words result() const {
    return (rounded(low_) >> 16) | (rounded(high_) & 0xffff0000U);
  }

 private:
  [[gnu::always_inline]] static Floats low(Words words) {
    return reinterpret_cast<Floats>(words << 16);
  }
  [[gnu::always_inline]] static Floats high(Words words) {
    return reinterpret_cast<Floats>(words & 0xffff0000U);
  }
  /// To nearest even, in the upper half of each word.
  [[gnu::always_inline]] static Words rounded(Floats sum) {
    const Words bits = reinterpret_cast<Words>(sum);
    const Words nearest = bits + 0x7fffU + ((bits >> 16) & 1U);
    return sum != sum ? Words{} + 0x7fc00000U : nearest;
  }

  Floats low_, high_;
};

/// Maximum of floating-point numbers by their bits: exact, and whatever the floating-point mode is.
/// With the bits below a set sign flipped, bits order like numbers: negative NaNs, -inf to -0, +0
/// to +inf, positive NaNs. Subtracting the gap below -inf wraps the negative NaNs to the top.
template <typename Signed, typename Unsigned, Unsigned kInfinity, size_t kBytes>
class MaxFloat {
  using U = Vector<Unsigned, kBytes>;
  using I = Vector<Signed, kBytes>;
  static constexpr int kSignBit = 8 * sizeof(Unsigned) - 1;
  static constexpr Unsigned kBelowSign = (Unsigned{1} << kSignBit) - 1;
  static constexpr Unsigned kGap = kBelowSign - kInfinity;
  static constexpr Unsigned kQuietNan = kInfinity + (kGap + 1) / 2;

 public:
  static constexpr size_t kElement = sizeof(Unsigned);
  [[gnu::always_inline]] explicit MaxFloat(Bytes first) : max_(key(first)) {}
  [[gnu::always_inline]] void take(Bytes next) {
    const I other = key(next);
    max_ = other > max_ ? other : max_;
  }
  [[gnu::always_inline]] U result() const {
    const I is_nan = max_ > static_cast<Signed>(kInfinity - kGap);
    return is_nan ? U{} + kQuietNan : flipped(reinterpret_cast<U>(max_) + kGap);
  }

 private:
  [[gnu::always_inline]] static U flipped(U bits) {
    return bits ^ (reinterpret_cast<U>(reinterpret_cast<I>(bits) >> kSignBit) & kBelowSign);
  }
  [[gnu::always_inline]] static I key(Bytes from) {
    return reinterpret_cast<I>(flipped(load<Unsigned, kBytes>(from)) - kGap);
  }

  I max_;
};
template <size_t kBytes>
using MaxF32 = MaxFloat<std::int32_t, std::uint32_t, 0x7f800000, kBytes>;
template <size_t kBytes>
using MaxBf16 = MaxFloat<std::int16_t, std::uint16_t, 0x7f80, kBytes>;

template <size_t kBytes>
class SumI64 {
 public:
  static constexpr size_t kElement = 8;
  [[gnu::always_inline]] explicit SumI64(Bytes first) : sum_(load<std::uint64_t, kBytes>(first)) {}
  [[gnu::always_inline]] void take(Bytes next) { sum_ += load<std::uint64_t, kBytes>(next); }
  [[gnu::always_inline]] auto result() const { return sum_; }

 private:
  Vector<std::uint64_t, kBytes> sum_;
};

template <size_t kBytes>
class MaxI64 {
 public:
  static constexpr size_t kElement = 8;
  [[gnu::always_inline]] explicit MaxI64(Bytes first) : max_(load<std::int64_t, kBytes>(first)) {}
  [[gnu::always_inline]] void take(Bytes next) {
    const auto other = load<std::int64_t, kBytes>(next);
    max_ = other > max_ ? other : max_;
  }
  [[gnu::always_inline]] auto result() const { return max_; }

 private:
  Vector<std::int64_t, kBytes> max_;
};

// --- loops --------------------------------------------------------------------------------------

/// `kCount` sources, whose addresses are in registers; 0: as many as the argument says.
template <size_t kCount>
class Sources {
 public:
  [[gnu::always_inline]] Sources(const void* const* src, size_t) {
    for (size_t k = 0; k < kCount; ++k) at_[k] = static_cast<Bytes>(src[k]);
  }
  template <typename Block>
  [[gnu::always_inline]] auto reduce(size_t offset) const {
    Block block(at_[0] + offset);
    take<1>(block, offset);
    return block.result();
  }

 private:
  template <size_t kNext, typename Block>
  [[gnu::always_inline]] void take(Block& block, size_t offset) const {
    if constexpr (kNext < kCount) {
      block.take(at_[kNext] + offset);
      take<kNext + 1>(block, offset);
    }
  }
  Bytes at_[kCount];
};

template <>
class Sources<0> {
 public:
  [[gnu::always_inline]] Sources(const void* const* src, size_t count) : src_(src), count_(count) {}
  template <typename Block>
  [[gnu::always_inline]] auto reduce(size_t offset) const {
    Block block(static_cast<Bytes>(src_[0]) + offset);
    for (size_t k = 1; k < count_; ++k) block.take(static_cast<Bytes>(src_[k]) + offset);
    return block.result();
  }

 private:
  const void* const* src_;
  size_t count_;
};

struct Output {
  unsigned char *dst, *also;
  template <size_t kBytes, typename V>
  [[gnu::always_inline]] void put(size_t offset, V block) const {
    store<kBytes>(dst + offset, block);
    if (also != nullptr) store<kBytes>(also + offset, block);
  }
};

/// kBytes <= bytes < 2 * kBytes: a block from each end. Both are computed before either is stored,
/// because they may overlap and the output may be a source.
template <template <size_t> class Op, size_t kBytes, typename S>
[[gnu::always_inline]] inline void reduce_ends(const Output& out, const S& src, size_t bytes) {
  const size_t last = bytes - kBytes;
  const auto front = src.template reduce<Op<kBytes>>(0);
  if (last == 0) return out.put<kBytes>(0, front);
  const auto back = src.template reduce<Op<kBytes>>(last);
  out.put<kBytes>(0, front);
  out.put<kBytes>(last, back);
}

/// Fewer than 2 * kBytes bytes.
template <template <size_t> class Op, size_t kBytes, typename S>
[[gnu::always_inline]] inline void reduce_few(const Output& out, const S& src, size_t bytes) {
  if constexpr (kBytes >= Op<kBytes>::kElement) {
    if (bytes >= kBytes) return reduce_ends<Op, kBytes>(out, src, bytes);
    if constexpr (kBytes > 2) reduce_few<Op, kBytes / 2>(out, src, bytes);
  }
}

/// At least 2 * kVector bytes. The blocks between the ends are at aligned addresses of dst (as
/// far as its elements are), because stores across cache lines are slow. The ends may overlap them,
/// and the output may be a source: so the ends are computed first and stored last.
template <template <size_t> class Op, size_t kCount>
[[gnu::noinline]] void reduce_many(void* dst, void* also, const void* const* src, size_t sources,
                                   size_t bytes) {
  const Output out{static_cast<unsigned char*>(dst), static_cast<unsigned char*>(also)};
  const Sources<kCount> from(src, sources);
  const size_t last = bytes - kVector;
  const auto front = from.template reduce<Op<kVector>>(0);
  const auto back = from.template reduce<Op<kVector>>(last);
  size_t offset = kVector - reinterpret_cast<std::uintptr_t>(dst) % kVector;
  offset -= offset % Op<kVector>::kElement;
  for (; offset < last; offset += kVector)
    out.put<kVector>(offset, from.template reduce<Op<kVector>>(offset));
  out.put<kVector>(0, front);
  out.put<kVector>(last, back);
}

// The steps are functions of their own, so that a short reduction does not pay for the registers
// that a long one saves.
template <template <size_t> class Op, size_t kCount>
[[gnu::noinline]] void reduce(void* dst, void* also, const void* const* src, size_t sources,
                              size_t count) {
  const size_t bytes = count * Op<kVector>::kElement;
  if (bytes >= 2 * kVector) return reduce_many<Op, kCount>(dst, also, src, sources, bytes);
  const Output out{static_cast<unsigned char*>(dst), static_cast<unsigned char*>(also)};
  if (bytes != 0) reduce_few<Op, kVector>(out, Sources<kCount>(src, sources), bytes);
}

template <template <size_t> class Op>
[[gnu::noinline]] void copy(void* dst, void* also, const void* const* src, size_t count) {
  const size_t bytes = count * Op<kVector>::kElement;
  if (bytes == 0) return;
  if (dst != src[0]) __builtin_memcpy(dst, src[0], bytes);
  if (also != nullptr) __builtin_memcpy(also, src[0], bytes);
}

template <template <size_t> class Op>
[[gnu::noinline]] void by_sources(void* dst, void* also, const void* const* src, size_t sources,
                                  size_t count) {
  switch (sources) {
    case 1:
      return copy<Op>(dst, also, src, count);
    case 2:
      return reduce<Op, 2>(dst, also, src, sources, count);
    case 3:
      return reduce<Op, 3>(dst, also, src, sources, count);
    case 4:
      return reduce<Op, 4>(dst, also, src, sources, count);
    case 8:
      return reduce<Op, 8>(dst, also, src, sources, count);
    default:
      return reduce<Op, 0>(dst, also, src, sources, count);
  }
}

// --- floating-point mode ------------------------------------------------------------------------

/// Runs `kernel` in the default floating-point mode. The caller may flush denormals (-ffast-math
/// anywhere in the process sets that) or round elsewhere, and ranks must not differ for it.
template <ReduceFn kernel>
void in_default_mode(void* dst, void* also, const void* const* src, size_t sources, size_t count) {
#if defined(__x86_64__)
  constexpr unsigned kDefault = 0x1f80, kFlags = 0x3f;
  const unsigned mode = __builtin_ia32_stmxcsr();
  if ((mode & ~kFlags) != kDefault) [[unlikely]] {
    __builtin_ia32_ldmxcsr(kDefault);
    kernel(dst, also, src, sources, count);
    return __builtin_ia32_ldmxcsr(mode);
  }
#endif
  kernel(dst, also, src, sources, count);
}

constexpr Kernel kKernels[] = {
    {DType::f32, ReduceOp::sum, in_default_mode<by_sources<SumF32>>},
    {DType::f32, ReduceOp::max, by_sources<MaxF32>},
    {DType::bf16, ReduceOp::sum, in_default_mode<by_sources<SumBf16>>},
    {DType::bf16, ReduceOp::max, by_sources<MaxBf16>},
    {DType::i64, ReduceOp::sum, by_sources<SumI64>},
    {DType::i64, ReduceOp::max, by_sources<MaxI64>},
};

}  // namespace
}  // namespace anyccl

extern "C" {
extern const anyccl::KernelTable ANYCCL_KERNELS;
const anyccl::KernelTable ANYCCL_KERNELS = {anyccl::kKernels,
                                            sizeof anyccl::kKernels / sizeof anyccl::kKernels[0]};
}
