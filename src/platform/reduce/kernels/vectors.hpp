#pragma once
// Vectors, and how they get from and to memory. Like all of this folder a part of kernels.cpp, and
// of nothing else.

#include <cstddef>
#include <cstdint>

namespace anyccl {
namespace {

using std::size_t;
using Bytes = const unsigned char*;
constexpr size_t kVector = ANYCCL_VECTOR_BYTES;

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
template <> struct WordOf<1> { using Unsigned = std::uint8_t;  using Signed = std::int8_t; };
template <> struct WordOf<2> { using Unsigned = std::uint16_t; using Signed = std::int16_t; };
template <> struct WordOf<4> { using Unsigned = std::uint32_t; using Signed = std::int32_t; };
template <> struct WordOf<8> { using Unsigned = std::uint64_t; using Signed = std::int64_t; };
// clang-format on
template <size_t kBytes>
using Unsigned = typename WordOf<kBytes>::Unsigned;
template <size_t kBytes>
using Signed = typename WordOf<kBytes>::Signed;

template <typename T, size_t kBytes>
[[gnu::always_inline]] inline Vector<T, kBytes> load(Bytes from) {
  if constexpr (kBytes >= 16) {
    Vector<T, kBytes> vector;
    __builtin_memcpy(&vector, from, kBytes);
    return vector;
  } else {
    Unsigned<kBytes> word;
    __builtin_memcpy(&word, from, kBytes);
    return reinterpret_cast<Vector<T, kBytes>>(Vector<std::uint64_t, 16>{word, 0});
  }
}

template <size_t kBytes, typename V>
[[gnu::always_inline]] inline void store(unsigned char* to, V vector) {
  if constexpr (kBytes >= 16) {
    __builtin_memcpy(to, &vector, kBytes);
  } else {
    const auto word =
        static_cast<Unsigned<kBytes>>(reinterpret_cast<Vector<std::uint64_t, 16>>(vector)[0]);
    __builtin_memcpy(to, &word, kBytes);
  }
}

/// A block in two vectors.
template <typename V>
struct Two {
  V low, high;
};
template <size_t kBytes, typename V>
[[gnu::always_inline]] inline void store(unsigned char* to, const Two<V>& two) {
  store<kBytes / 2>(to, two.low);
  store<kBytes / 2>(to + kBytes / 2, two.high);
}

}  // namespace
}  // namespace anyccl
