#pragma once
// The loops over blocks and sources.

#include "platform/reduce/kernels.hpp"
#include "platform/reduce/kernels/copy_ahead.hpp"
#include "platform/reduce/kernels/copy_distance.hpp"
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
  [[gnu::always_inline]] static void apply(B& block, const B& next) {
    Operator::apply(block, next);
  }
  /// Whether the order makes no difference.
  static constexpr bool kExact = !Type::kRounds || !Operator::kRounds;
};

// --- the order of the sources: docs/adr/0056 ----------------------------------------------------

// The aligned tree over `low` to `high`: what is below the largest power of two that fits in, and
// the rest. A `read(k)` is source k, as a Block.

constexpr size_t left_part(size_t count) {
  size_t power = 1;
  while (2 * power < count) power *= 2;
  return power;
}

template <typename Op, size_t kLow, size_t kHigh, typename Read>
[[gnu::always_inline]] inline auto fold(const Read& read) {
  if constexpr (kHigh - kLow == 1) {
    return read(kLow);
  } else {
    constexpr size_t kMiddle = kLow + left_part(kHigh - kLow);
    auto block = fold<Op, kLow, kMiddle>(read);
    Op::apply(block, fold<Op, kMiddle, kHigh>(read));
    return block;
  }
}

/// Sums that wait for those to their right, as many as a number has ones: 2^32 sources at most.
template <typename Block>
class Waiting {
 public:
  [[gnu::always_inline]] void push(const Block& block) { at_[count_++].block = block; }
  [[gnu::always_inline]] bool empty() const { return count_ == 0; }
  /// The last one, with `right`.
  template <typename Op>
  [[gnu::always_inline]] Block join(const Block& right) {
    Block& left = at_[--count_].block;
    Op::apply(left, right);
    return left;
  }

 private:
  union Room {
    Block block;
    [[gnu::always_inline]] Room() {}
  };
  Room at_[33];
  size_t count_ = 0;
};

/// The node of kSize sources at k, or what there is of it.
template <typename Op, size_t kSize, typename Read>
[[gnu::always_inline]] inline auto fold_node(const Read& read, size_t k, size_t count) {
  if constexpr (kSize == 1) {
    return read(k);
  } else {
    auto block = fold_node<Op, kSize / 2>(read, k, count);
    if (k + kSize / 2 < count)
      Op::apply(block, fold_node<Op, kSize / 2>(read, k + kSize / 2, count));
    return block;
  }
}

/// Folds any number of sources: kSize at a time, a power of two, as these are a node of the tree.
template <typename Op, size_t kSize, typename Read>
[[gnu::always_inline]] inline auto fold_any(const Read& read, size_t count) {
  auto block = read(0);
  if constexpr (Op::kExact) {
    for (size_t k = 1; k < count; ++k) Op::apply(block, read(k));
  } else {
    block = fold_node<Op, kSize>(read, 0, count);
    Waiting<decltype(block)> waiting;
    for (size_t k = kSize; k < count; k += kSize) {
      waiting.push(block);
      block = fold_node<Op, kSize>(read, k, count);
      for (size_t node = k / kSize; node % 2 != 0; node /= 2)
        block = waiting.template join<Op>(block);
    }
    while (!waiting.empty()) block = waiting.template join<Op>(block);
  }
  return block;
}

/// `kCount` sources, whose addresses are in registers; 0: as many as the argument says.
template <size_t kCount>
class Sources {
 public:
  [[gnu::always_inline]] Sources(const void* const* src, size_t) {
    for (size_t k = 0; k < kCount; ++k) at_[k] = static_cast<Bytes>(src[k]);
  }
  template <typename Op, size_t kBytes>
  [[gnu::always_inline]] auto reduce(size_t offset) const {
    using Block = typename Op::template Block<kBytes>;
    const auto read = [&](size_t k) __attribute__((always_inline)) {
      return Block(at_[k] + offset);
    };
    return fold<Op, 0, kCount>(read).bits();
  }
  [[gnu::always_inline]] void fetch(size_t offset) const {
    for (size_t k = 0; k < kCount; ++k) __builtin_prefetch(at_[k] + offset);
  }

 private:
  Bytes at_[kCount];
};

template <>
class Sources<0> {
 public:
  [[gnu::always_inline]] Sources(const void* const* src, size_t count) : src_(src), count_(count) {}
  template <typename Op, size_t kBytes>
  [[gnu::always_inline]] auto reduce(size_t offset) const {
    if constexpr (Op::kExact)
      return fold_all<Op, kBytes>(src_, count_, offset);
    else
      return fold_apart<Op, kBytes>(src_, count_, offset);
  }
  [[gnu::always_inline]] void fetch(size_t offset) const {
    for (size_t k = 0; k < count_; ++k) __builtin_prefetch(static_cast<Bytes>(src_[k]) + offset);
  }

 private:
  /// A function of its own, as the code is long and the sources are many.
  template <typename Op, size_t kBytes>
  [[gnu::noinline]] static auto fold_apart(const void* const* src, size_t count, size_t offset) {
    return fold_all<Op, kBytes>(src, count, offset);
  }
  template <typename Op, size_t kBytes>
  [[gnu::always_inline]] static auto fold_all(const void* const* src, size_t count, size_t offset) {
    using Block = typename Op::template Block<kBytes>;
    const auto read = [&](size_t k) __attribute__((always_inline)) {
      return Block(static_cast<Bytes>(src[k]) + offset);
    };
    return fold_any<Op, 8>(read, count).bits();
  }

  const void* const* src_;
  size_t count_;
};

/// From so many bytes on, and so far ahead: the time of a line on its way from another core.
constexpr size_t kFetchFrom = 8192, kFetchAhead = 2048;

struct Output {
  unsigned char *dst, *also;
  [[gnu::always_inline]] void fetch(size_t offset) const {
    fetch_for_writing(dst + offset);
    if (also != nullptr) fetch_for_writing(also + offset);
  }
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

/// At least 2 * kVector bytes. Lines that another core has are fetched ahead, where that is faster.
/// The blocks between the ends are at aligned addresses of dst (as
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
  const size_t fetched_until = kFetchesAhead && bytes >= kFetchFrom ? last - kFetchAhead : 0;
  for (; offset < last; offset += kVector) {
    if (offset < fetched_until) {
      out.fetch(offset + kFetchAhead);
      from.fetch(offset + kFetchAhead);
    }
    out.put<kVector>(offset, from.template reduce<Op, kVector>(offset));
  }
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

[[gnu::noinline]] void copy_to(void* to, const void* from, size_t bytes) {
  if (is_slow_for_rep_movsb(to, from))
    copy_ahead(to, from, bytes);
  else
    __builtin_memcpy(to, from, bytes);
}

[[gnu::noinline]] void copy(void* dst, void* also, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (dst != from) copy_to(dst, from, bytes);
  if (also != nullptr) copy_to(also, from, bytes);
}

/// Builds for old processors have loops of their own for one and two sources only.
#if defined(ANYCCL_FEW_LOOPS)
constexpr bool kFewLoops = true;
#else
constexpr bool kFewLoops = false;
#endif

/// For what is often asked for: the usual numbers of sources have loops of their own.
template <typename Op>
[[gnu::noinline]] void by_sources(void* dst, void* also, const void* const* src, size_t sources,
                                  size_t count) {
  if (sources == 1) return copy(dst, also, src[0], count * Op::kElement);
  if (sources == 2) return reduce<Op, 2>(dst, also, src, sources, count);
  if constexpr (!kFewLoops) {
    switch (sources) {
      case 3:
        return reduce<Op, 3>(dst, also, src, sources, count);
      case 4:
        return reduce<Op, 4>(dst, also, src, sources, count);
      case 8:
        return reduce<Op, 8>(dst, also, src, sources, count);
      default:
        break;
    }
    // Where the order makes no difference, a loop over them is as fast.
    if constexpr (!Op::kExact) {
      if (sources == 5) return reduce<Op, 5>(dst, also, src, sources, count);
      if (sources == 6) return reduce<Op, 6>(dst, also, src, sources, count);
      if (sources == 7) return reduce<Op, 7>(dst, also, src, sources, count);
    }
  }
  return reduce<Op, 0>(dst, also, src, sources, count);
}

/// A block that may be the last and short one: then it goes through memory of our own.
struct Piece {
  /// Returns where kVector bytes can be read: `from`, or a copy of a short block in `memory`.
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
    const auto read = [&](size_t k) __attribute__((always_inline)) {
      return typename Op::template Block<kVector>(piece.read(static_cast<Bytes>(src[k]) + offset));
    };
    const auto bits = fold_any<Op, 4>(read, sources).bits();
    piece.write(static_cast<unsigned char*>(dst) + offset, bits);
    if (also != nullptr) piece.write(static_cast<unsigned char*>(also) + offset, bits);
  }
}

/// `kernel` where each element is kParts of its elements.
template <size_t kParts, ReduceFn kernel>
void in_parts(void* dst, void* also, const void* const* src, size_t sources, size_t count) {
  kernel(dst, also, src, sources, kParts * count);
}

// --- one source, divided ------------------------------------------------------------------------

/// Each of the `count` elements has kParts of Type, as a complex number has two.
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
