#pragma once
// Products of complex numbers; a sum is one of twice as many floats.

#include "platform/reduce/kernels/vectors.hpp"

namespace anyccl {
namespace {

/// A complex number has two parts of type `Part`, the real one first.
template <typename Part>
struct Complex {
  using T = typename Part::Wide;
  static constexpr size_t kElement = 2 * sizeof(T);
  static constexpr bool kRounds = true;
  template <size_t kBytes>
  struct Block : Part::template Block<kBytes> {
    using V = Vector<T, kBytes>;
    using Part::template Block<kBytes>::Block;
    /// (a + bi)(c + di) = ac - bd + (bc + ad)i, each product and sum rounded.
    [[gnu::always_inline]] void operator*=(const Block& other) {
      V turned{}, real{}, imaginary{};
      for (size_t i = 0; i < sizeof(V) / sizeof(T); i += 2) {
        turned[i] = this->v[i + 1];
        turned[i + 1] = this->v[i];
        real[i] = real[i + 1] = other.v[i];
        imaginary[i] = -other.v[i + 1];
        imaginary[i + 1] = other.v[i + 1];
      }
      this->v = this->v * real + turned * imaginary;
    }
  };
};

}  // namespace
}  // namespace anyccl
