// Types of 16 and 8 bits: few enough values to try them all.

#include <gtest/gtest.h>

#include "reference.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

class SmallFloat : public testing::TestWithParam<DType> {
 protected:
  DType type() const { return GetParam(); }
  Format format() const { return format_of(type()); }
  std::size_t bytes() const { return bytes_of(type()); }

  Memory memory(const std::vector<Bits>& elements) const {
    Memory memory(elements.size() * bytes());
    for (std::size_t i = 0; i < elements.size(); ++i)
      std::memcpy(memory.data() + i * bytes(), &elements[i], bytes());
    return memory;
  }
  std::vector<Bits> every_value() const {
    std::vector<Bits> all(2 * format().sign());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }
  /// 2^power times the unit in the last place of each value, as far as the type has it.
  std::vector<Bits> scaled_ulps(int power, bool negative) const {
    const Format f = format();
    std::vector<Bits> ulps;
    for (const Bits bits : every_value()) {
      const auto field = static_cast<int>((bits & (f.sign() - 1)) >> f.mantissa);
      const int ulp = std::max(field, 1) - ((1 << (f.exponent - 1)) - 1) - f.mantissa;
      ulps.push_back(nearest(f, std::ldexp(negative ? -1.0 : 1.0, ulp + power)));
    }
    return ulps;
  }
  void expect_reduced(ReduceOp op, const std::vector<Memory>& sources) const {
    const Memory expected = reduced(type(), op, sources);
    for (const Isa& isa : supported_isas()) {
      const Memory result = run(isa, type(), op, sources);
      for (std::size_t i = 0; i < result.size() / bytes(); ++i)
        ASSERT_EQ(bits_at(result, bytes(), i), bits_at(expected, bytes(), i))
            << isa.name << " " << name_of(op) << ", element " << i;
    }
  }
};

/// Values are the same under sanitizers, and the 256 of 8 bits go through the same code.
INSTANTIATE_TEST_SUITE_P(Types, SmallFloat,
                         testing::ValuesIn(kSanitized ? std::vector{DType::f8e4m3, DType::f8e5m2}
                                                      : std::vector{DType::f16, DType::bf16,
                                                                    DType::f8e4m3, DType::f8e5m2}),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(SmallFloat, minus_zero_changes_no_value) {
  const std::vector<Bits> values = every_value();
  const Memory zeros = memory(std::vector<Bits>(values.size(), format().sign()));
  for (const Isa& isa : supported_isas()) {
    const Memory result = run(isa, type(), ReduceOp::sum, {memory(values), zeros});
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(bits_at(result, bytes(), i),
                std::isnan(value(format(), i)) ? format().nan : values[i])
          << isa.name;
  }
}

TEST_P(SmallFloat, every_value_rounds_to_nearest_even_at_and_around_the_middle) {
  const Memory values = memory(every_value()), zeros(values.size(), 0);
  for (const bool negative : {false, true})
    for (const Memory& tiny :
         {zeros, memory(scaled_ulps(-8, false)), memory(scaled_ulps(-8, true))})
      expect_reduced(ReduceOp::sum, {values, memory(scaled_ulps(-1, negative)), tiny});
}

TEST_P(SmallFloat, every_value_is_right_with_many_others) {
  const std::vector<Bits> values = every_value();
  const std::size_t partners = bytes() == 1 ? values.size() : 4;  // Of 8 bits, all pairs.
  for (std::size_t k = 0; k < partners; ++k) {
    std::vector<Bits> others(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      others[i] = (3 * i + k * values.size() / partners) % values.size();
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min})
      expect_reduced(op, {memory(values), memory(others)});
  }
}

// 1 + half a unit rounds back to 1, so rounding at each step would lose all of them.
TEST_P(SmallFloat, rounds_once_however_many_sources_there_are) {
  const double half = std::ldexp(1.0, -format().mantissa - 1);
  for (unsigned more = 2; more <= 40; more += 2) {
    std::vector<Memory> sources(1 + more, memory(std::vector<Bits>(37, nearest(format(), half))));
    sources[0] = memory(std::vector<Bits>(37, nearest(format(), 1.0)));
    const Memory expected = memory(std::vector<Bits>(37, nearest(format(), 1.0 + more * half)));
    for (const Isa& isa : supported_isas())
      ASSERT_EQ(run(isa, type(), ReduceOp::sum, sources), expected) << isa.name << ": " << more;
  }
}

TEST_P(SmallFloat, too_large_is_infinite_or_without_infinities_nan) {
  const Format f = format();
  const Bits largest = f.past_finite() - 1;
  for (const Isa& isa : supported_isas()) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod})
      EXPECT_EQ(run(isa, type(), op, {largest, largest}), f.past_finite()) << isa.name;
    EXPECT_EQ(run(isa, type(), ReduceOp::sum, {largest | f.sign(), largest | f.sign()}),
              f.infinities ? f.past_finite() | f.sign() : f.nan)
        << isa.name;
  }
}

}  // namespace
}  // namespace anyccl::test
