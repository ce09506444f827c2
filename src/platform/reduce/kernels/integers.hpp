#pragma once
// Operators, and the elements that they work on as they are: integers, and truth values.
//
// A type of elements has kElement, their bytes, kRounds, whether their sums and products are
// rounded, and Block<kBytes>: a block of them, made from memory, combined with others by an
// operator, and turned by bits() into what is to be stored.

#include "platform/reduce/kernels/vectors.hpp"

namespace anyccl {
namespace {

// clang-format off
struct Plus    { static constexpr bool kRounds = true; template <typename B> [[gnu::always_inline]] static void apply(B& a, const B& b) { a += b; } };
struct Times   { static constexpr bool kRounds = true; template <typename B> [[gnu::always_inline]] static void apply(B& a, const B& b) { a *= b; } };
struct Larger  { static constexpr bool kRounds = false; template <typename B> [[gnu::always_inline]] static void apply(B& a, const B& b) { a.v = b.v > a.v ? b.v : a.v; } };
struct Smaller { static constexpr bool kRounds = false; template <typename B> [[gnu::always_inline]] static void apply(B& a, const B& b) { a.v = b.v < a.v ? b.v : a.v; } };
struct And     { static constexpr bool kRounds = false; template <typename B> [[gnu::always_inline]] static void apply(B& a, const B& b) { a.v &= b.v; } };
struct Or      { static constexpr bool kRounds = false; template <typename B> [[gnu::always_inline]] static void apply(B& a, const B& b) { a.v |= b.v; } };
struct Xor     { static constexpr bool kRounds = false; template <typename B> [[gnu::always_inline]] static void apply(B& a, const B& b) { a.v ^= b.v; } };
// clang-format on

/// Sums and products want T unsigned: they wrap.
template <typename T>
struct Integer {
  static constexpr size_t kElement = sizeof(T);
  static constexpr bool kRounds = false;
  template <size_t kBytes>
  struct Block {
    [[gnu::always_inline]] explicit Block(Bytes from) : v(load<T, kBytes>(from)) {}
    [[gnu::always_inline]] void operator+=(const Block& other) { v += other.v; }
    [[gnu::always_inline]] void operator*=(const Block& other) { v *= other.v; }
    [[gnu::always_inline]] auto bits() const { return v; }
    Vector<T, kBytes> v;
  };
};

/// Whether each T is not 0.
template <typename T>
struct Truth {
  static constexpr size_t kElement = sizeof(T);
  static constexpr bool kRounds = false;
  template <size_t kBytes>
  struct Block {
    using Mask = Vector<Signed<sizeof(T)>, kBytes>;
    [[gnu::always_inline]] explicit Block(Bytes from) : v(load<T, kBytes>(from) != 0) {}
    [[gnu::always_inline]] Mask bits() const { return v & 1; }
    Mask v;
  };
};

}  // namespace
}  // namespace anyccl
