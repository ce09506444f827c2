#include <gtest/gtest.h>

#include "reference.hpp"

namespace anyccl::test {
namespace {

using Halves = std::vector<std::uint16_t>;

Halves sum(const Isa& isa, const std::vector<Halves>& sources) {
  std::vector<const void*> pointers;
  for (const Halves& source : sources) pointers.push_back(source.data());
  Halves result(sources[0].size());
  kernel(isa, DType::bf16, ReduceOp::sum)(result.data(), nullptr, pointers.data(), pointers.size(),
                                          result.size());
  return result;
}

Halves every_value() {
  Halves all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

/// 2^power times the unit in the last place of each finite value, as far as bf16 has it.
Halves scaled_ulps(const Halves& values, int power, bool negative) {
  Halves ulps;
  for (const std::uint16_t bits : values) {
    const int exponent = std::max(bits >> 7 & 0xff, 1) - 127;
    const float ulp = static_cast<float>(std::ldexp(negative ? -1.0 : 1.0, exponent - 7 + power));
    ulps.push_back(nearest_bf16(ulp));
  }
  return ulps;
}

TEST(Bf16, minus_zero_changes_no_value) {
  const Halves values = every_value(), zeros(values.size(), 0x8000);
  for (const Isa& isa : supported_isas()) {
    const Halves result = sum(isa, {values, zeros});
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(result[i], std::isnan(bf16(i)) ? kNanBf16 : values[i]) << isa.name;
  }
}

TEST(Bf16, every_value_rounds_to_nearest_even_at_and_around_the_middle) {
  const Halves values = every_value(), zeros(values.size(), 0);
  for (const bool negative : {false, true}) {
    const Halves half = scaled_ulps(values, -1, negative);
    for (const Halves& tiny :
         {zeros, scaled_ulps(values, -8, false), scaled_ulps(values, -8, true)}) {
      for (const Isa& isa : supported_isas()) {
        const Halves result = sum(isa, {values, half, tiny});
        for (std::size_t i = 0; i < values.size(); ++i) {
          const float exact = (bf16(values[i]) + bf16(half[i])) + bf16(tiny[i]);
          ASSERT_EQ(result[i], nearest_bf16(exact)) << isa.name << ": " << i << " " << exact;
        }
      }
    }
  }
}

// 1 + 2^-8 rounds back to 1, so rounding at each step would lose all of them.
TEST(Bf16, rounds_once_however_many_sources_there_are) {
  for (std::size_t more = 2; more <= 40; more += 2) {
    std::vector<Halves> sources(1 + more, Halves(37, nearest_bf16(0x1p-8F)));
    sources[0].assign(37, nearest_bf16(1.0F));
    const std::uint16_t expected = nearest_bf16(1.0F + static_cast<float>(more) * 0x1p-8F);
    for (const Isa& isa : supported_isas())
      ASSERT_EQ(sum(isa, sources), Halves(37, expected)) << isa.name << ": " << more;
  }
}

TEST(Bf16, overflow_is_infinite) {
  for (const Isa& isa : supported_isas()) {
    EXPECT_EQ(sum(isa, {{0x7f7f}, {0x7f7f}}), Halves{0x7f80}) << isa.name;
    EXPECT_EQ(sum(isa, {{0xff7f}, {0xff7f}}), Halves{0xff80}) << isa.name;
  }
}

}  // namespace
}  // namespace anyccl::test
