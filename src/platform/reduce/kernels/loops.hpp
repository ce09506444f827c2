#pragma once
// The loops over blocks and sources.

#include "platform/reduce/kernels.hpp"
#include "platform/reduce/kernels/vectors.hpp"

namespace anyccl {
namespace {

/// A type of elements and how a block of them takes in another.
template <typename Type, typename Operator>
struct Reduction {
  static constexpr size_t kElement = Type::kElement;
  template <size_t kBytes>
  using Block = typename Type::template Block<kBytes>;
  template <typename B>
  [[gnu::always_inline]] static void apply(B& block, Bytes next) {
    Operator::apply(block, B(next));
  }
};

/// `kCount` sources, whose addresses are in registers; 0: as many as the argument says.
template <size_t kCount>
class Sources {
 public:
  [[gnu::always_inline]] Sources(const void* const* src, size_t) {
    for (size_t k = 0; k < kCount; ++k) at_[k] = static_cast<Bytes>(src[k]);
  }
  template <typename Op, size_t kBytes>
  [[gnu::always_inline]] auto reduce(size_t offset) const {
    typename Op::template Block<kBytes> block(at_[0] + offset);
    take<Op, 1>(block, offset);
    return block.bits();
  }

 private:
  template <typename Op, size_t kNext, typename Block>
  [[gnu::always_inline]] void take(Block& block, size_t offset) const {
    if constexpr (kNext < kCount) {
      Op::apply(block, at_[kNext] + offset);
      take<Op, kNext + 1>(block, offset);
    }
  }
  Bytes at_[kCount];
};

template <>
class Sources<0> {
 public:
  [[gnu::always_inline]] Sources(const void* const* src, size_t count) : src_(src), count_(count) {}
  template <typename Op, size_t kBytes>
  [[gnu::always_inline]] auto reduce(size_t offset) const {
    typename Op::template Block<kBytes> block(static_cast<Bytes>(src_[0]) + offset);
    for (size_t k = 1; k < count_; ++k) Op::apply(block, static_cast<Bytes>(src_[k]) + offset);
    return block.bits();
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
template <typename Op, size_t kBytes, typename S>
[[gnu::always_inline]] inline void reduce_ends(const Output& out, const S& src, size_t bytes) {
  const size_t last = bytes - kBytes;
  const auto front = src.template reduce<Op, kBytes>(0);
  if (last == 0) return out.put<kBytes>(0, front);
  const auto back = src.template reduce<Op, kBytes>(last);
  out.put<kBytes>(0, front);
  out.put<kBytes>(last, back);
}

/// Fewer than 2 * kBytes bytes.
template <typename Op, size_t kBytes, typename S>
[[gnu::always_inline]] inline void reduce_few(const Output& out, const S& src, size_t bytes) {
  if (bytes >= kBytes) return reduce_ends<Op, kBytes>(out, src, bytes);
  if constexpr (kBytes > Op::kElement) reduce_few<Op, kBytes / 2>(out, src, bytes);
}

/// At least 2 * kVector bytes. The blocks between the ends are at aligned addresses of dst (as
/// far as its elements are), because stores across cache lines are slow. The ends may overlap them,
/// and the output may be a source: so the ends are computed first and stored last.
template <typename Op, size_t kCount>
[[gnu::noinline]] void reduce_many(void* dst, void* also, const void* const* src, size_t sources,
                                   size_t bytes) {
  const Output out{static_cast<unsigned char*>(dst), static_cast<unsigned char*>(also)};
  const Sources<kCount> from(src, sources);
  const size_t last = bytes - kVector;
  const auto front = from.template reduce<Op, kVector>(0);
  const auto back = from.template reduce<Op, kVector>(last);
  size_t offset = kVector - reinterpret_cast<std::uintptr_t>(dst) % kVector;
  offset -= offset % Op::kElement;
  for (; offset < last; offset += kVector)
    out.put<kVector>(offset, from.template reduce<Op, kVector>(offset));
  out.put<kVector>(0, front);
  out.put<kVector>(last, back);
}

// The steps are functions of their own, so that a short reduction does not pay for the registers
// that a long one saves.
template <typename Op, size_t kCount>
[[gnu::noinline]] void reduce(void* dst, void* also, const void* const* src, size_t sources,
                              size_t count) {
  const size_t bytes = count * Op::kElement;
  if (bytes >= 2 * kVector) return reduce_many<Op, kCount>(dst, also, src, sources, bytes);
  const Output out{static_cast<unsigned char*>(dst), static_cast<unsigned char*>(also)};
  if (bytes != 0) reduce_few<Op, kVector>(out, Sources<kCount>(src, sources), bytes);
}

[[gnu::noinline]] void copy(void* dst, void* also, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (dst != from) __builtin_memcpy(dst, from, bytes);
  if (also != nullptr) __builtin_memcpy(also, from, bytes);
}

/// For what is often asked for: the usual numbers of sources have loops of their own.
template <typename Op>
[[gnu::noinline]] void by_sources(void* dst, void* also, const void* const* src, size_t sources,
                                  size_t count) {
  switch (sources) {
    case 1:
      return copy(dst, also, src[0], count * Op::kElement);
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

/// A block that may be the last and short one: then it goes through memory of our own.
struct Piece {
  [[gnu::always_inline]] Bytes read(Bytes from) {
    if (bytes == kVector) return from;
    __builtin_memcpy(memory, from, bytes);
    return memory;
  }
  template <typename V>
  [[gnu::always_inline]] void write(unsigned char* to, V block) {
    if (bytes == kVector) return store<kVector>(to, block);
    store<kVector>(memory, block);
    __builtin_memcpy(to, memory, bytes);
  }
  size_t bytes;
  unsigned char memory[kVector];
};

/// For the rest: little code.
template <typename Op>
[[gnu::noinline]] void any_sources(void* dst, void* also, const void* const* src, size_t sources,
                                   size_t count) {
  const size_t bytes = count * Op::kElement;
  if (sources == 1) return copy(dst, also, src[0], bytes);
  for (size_t offset = 0; offset < bytes; offset += kVector) {
    Piece piece{bytes - offset < kVector ? bytes - offset : kVector, {}};
    typename Op::template Block<kVector> block(piece.read(static_cast<Bytes>(src[0]) + offset));
    for (size_t k = 1; k < sources; ++k)
      Op::apply(block, piece.read(static_cast<Bytes>(src[k]) + offset));
    piece.write(static_cast<unsigned char*>(dst) + offset, block.bits());
    if (also != nullptr) piece.write(static_cast<unsigned char*>(also) + offset, block.bits());
  }
}

/// `kernel` where each element is kParts of its elements.
template <size_t kParts, ReduceFn kernel>
void in_parts(void* dst, void* also, const void* const* src, size_t sources, size_t count) {
  kernel(dst, also, src, sources, kParts * count);
}

// --- one source, divided ------------------------------------------------------------------------

/// kParts: see in_parts.
template <typename Type, size_t kParts = 1>
void divide_floats(void* dst, const void* src, size_t count, std::uint32_t divisor) {
  const size_t bytes = kParts * count * Type::kElement;
  for (size_t offset = 0; offset < bytes; offset += kVector) {
    Piece piece{bytes - offset < kVector ? bytes - offset : kVector, {}};
    typename Type::template Block<kVector> block(piece.read(static_cast<Bytes>(src) + offset));
    block /= static_cast<typename Type::Wide>(divisor);
    piece.write(static_cast<unsigned char*>(dst) + offset, block.bits());
  }
}

/// Towards zero. Wide holds every T and every divisor.
template <typename T, typename Wide>
void divide_integers(void* dst, const void* src, size_t count, std::uint32_t divisor) {
  for (size_t i = 0; i < count; ++i) {
    T element;
    __builtin_memcpy(&element, static_cast<Bytes>(src) + i * sizeof(T), sizeof(T));
    element = static_cast<T>(element / Wide{divisor});
    __builtin_memcpy(static_cast<unsigned char*>(dst) + i * sizeof(T), &element, sizeof(T));
  }
}

}  // namespace
}  // namespace anyccl
