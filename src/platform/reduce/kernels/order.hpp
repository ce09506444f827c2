#pragma once
// Floating-point numbers by their bits, for maxima and minima: exact, and whatever the
// floating-point mode is.

#include "platform/reduce/kernels/vectors.hpp"

namespace anyccl {
namespace {

/// Keys that order like the numbers of `Type`, with all NaNs at the end that wins: the top for a
/// maximum, the bottom for a minimum.
///
/// With the bits below a set sign flipped, bits order like numbers: negative NaNs, -inf to -0, +0
/// to +inf, positive NaNs. Subtracting the gap below -inf wraps the negative NaNs to the top;
/// adding it, the positive ones to the bottom.
template <typename Type, bool kNansOnTop>
struct Keys {
  static constexpr size_t kElement = Type::kElement;
  static constexpr bool kRounds = false;
  template <size_t kBytes>
  class Block {
    using U = Vector<Unsigned<kElement>, kBytes>;
    using I = Vector<Signed<kElement>, kBytes>;
    static constexpr int kSignBit = 8 * kElement - 1;
    static constexpr auto kBelowSign =
        static_cast<Unsigned<kElement>>((std::uint64_t{1} << kSignBit) - 1);
    static constexpr auto kGap = static_cast<Unsigned<kElement>>(kBelowSign - Type::kLast);
    static constexpr auto kLastKey = static_cast<Signed<kElement>>(Type::kLast - kGap);

   public:
    [[gnu::always_inline]] explicit Block(Bytes from) {
      const U ordered = flipped(load<Unsigned<kElement>, kBytes>(from));
      v = reinterpret_cast<I>(kNansOnTop ? ordered - kGap : ordered + kGap);
    }
    /// Makes numbers of the keys again; every NaN becomes the one of the type.
    [[gnu::always_inline]] U bits() const {
      const auto key = reinterpret_cast<U>(v);
      const I is_nan = kNansOnTop ? v > kLastKey : v < static_cast<Signed<kElement>>(~kLastKey);
      return is_nan ? U{} + Type::kNan : flipped(kNansOnTop ? key + kGap : key - kGap);
    }
    I v;

   private:
    [[gnu::always_inline]] static U flipped(U bits) {
      return bits ^ (reinterpret_cast<U>(reinterpret_cast<I>(bits) >> kSignBit) & kBelowSign);
    }
  };
};

}  // namespace
}  // namespace anyccl
