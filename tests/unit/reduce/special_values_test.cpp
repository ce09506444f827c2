#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "reference.hpp"

namespace anyccl::test {
namespace {

class SpecialValues : public testing::TestWithParam<DType> {
 protected:
  Format format() const { return format_of(GetParam()); }
  Bits minus() const { return format().sign(); }
  Bits infinity() const { return format().past_finite(); }
  Bits one() const { return ((Bits{1} << (format().exponent - 1)) - 1) << format().mantissa; }
  Bits largest() const { return format().past_finite() - 1; }

  std::vector<Bits> nans() const {
    const Bits all_ones = format().sign() - 1;
    if (!format().infinities) return {all_ones, all_ones | minus()};
    return {format().nan, format().nan | minus(), infinity() + 1, (infinity() + 1) | minus(),
            all_ones,     all_ones | minus()};
  }
  std::vector<Bits> numbers() const {
    std::vector<Bits> some{0, one(), largest(), 1};
    if (format().infinities) some.push_back(infinity());
    for (std::size_t i = some.size(); i > 0; --i) some.push_back(some[i - 1] | minus());
    return some;
  }
  /// In both orders.
  void expect(ReduceOp op, Bits a, Bits b, Bits result) const {
    for (const Isa& isa : supported_isas()) {
      SCOPED_TRACE(testing::Message()
                   << isa.name << " " << name_of(op) << std::hex << " " << a << " " << b);
      EXPECT_EQ(run(isa, GetParam(), op, std::vector{a, b}), result);
      EXPECT_EQ(run(isa, GetParam(), op, std::vector{b, a}), result);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Types, SpecialValues,
                         testing::Values(DType::f16, DType::f32, DType::f64, DType::bf16,
                                         DType::f8e4m3, DType::f8e5m2),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(SpecialValues, anything_and_a_nan_is_the_quiet_nan) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min})
    for (const Bits nan : nans()) {
      for (const Bits x : numbers()) expect(op, nan, x, format().nan);
      for (const Bits x : nans()) expect(op, nan, x, format().nan);
    }
}

TEST_P(SpecialValues, minus_zero_is_below_zero) {
  expect(ReduceOp::max, minus(), 0, 0);
  expect(ReduceOp::min, minus(), 0, minus());
  expect(ReduceOp::max, minus(), minus(), minus());
  expect(ReduceOp::max, minus(), minus() | 1, minus());
  expect(ReduceOp::min, 0, 1, 0);
}

TEST_P(SpecialValues, infinities_are_beyond_all_numbers) {
  if (!format().infinities) return;
  for (const Bits x : numbers()) {
    expect(ReduceOp::max, infinity() | minus(), x, x);
    expect(ReduceOp::min, infinity(), x, x);
    expect(ReduceOp::max, infinity(), x, infinity());
    expect(ReduceOp::min, infinity() | minus(), x, infinity() | minus());
  }
}

TEST_P(SpecialValues, opposite_infinities_have_no_sum) {
  if (!format().infinities) return;
  expect(ReduceOp::sum, infinity(), infinity() | minus(), format().nan);
  expect(ReduceOp::prod, infinity(), 0, format().nan);
  expect(ReduceOp::prod, infinity(), one() | minus(), infinity() | minus());
}

TEST_P(SpecialValues, minus_zero_is_kept) {
  expect(ReduceOp::sum, minus(), minus(), minus());
  expect(ReduceOp::sum, minus(), 0, 0);
  expect(ReduceOp::prod, minus(), one(), minus());
  expect(ReduceOp::prod, minus(), minus(), 0);
}

TEST_P(SpecialValues, denormals_are_exact) {
  const Bits middle = Bits{1} << (format().mantissa - 1);
  expect(ReduceOp::sum, 1, 1, 2);
  expect(ReduceOp::sum, middle, middle, 2 * middle);
  expect(ReduceOp::prod, 1, one(), 1);
  expect(ReduceOp::prod, 1, 1, 0);
}

TEST(Integers, wrap_and_know_their_sign) {
  constexpr Bits kMost = std::numeric_limits<std::int64_t>::max(), kLeast = kMost + 1;
  const Bits minus_one = ~Bits{0};
  for (const Isa& isa : supported_isas()) {
    const auto of = [&](DType type, ReduceOp op, Bits a, Bits b) {
      return run(isa, type, op, std::vector{a, b});
    };
    EXPECT_EQ(of(DType::i64, ReduceOp::sum, kMost, 1), kLeast) << isa.name;
    EXPECT_EQ(of(DType::i64, ReduceOp::sum, kLeast, kLeast), 0U) << isa.name;
    EXPECT_EQ(of(DType::i8, ReduceOp::sum, 0x7f, 1), 0x80U) << isa.name;
    EXPECT_EQ(of(DType::u64, ReduceOp::prod, minus_one, minus_one), 1U) << isa.name;
    EXPECT_EQ(of(DType::i16, ReduceOp::prod, 0x7fff, 2), 0xfffeU) << isa.name;
    EXPECT_EQ(of(DType::i64, ReduceOp::max, minus_one, 1), 1U) << isa.name;
    EXPECT_EQ(of(DType::u64, ReduceOp::max, minus_one, 1), minus_one) << isa.name;
    EXPECT_EQ(of(DType::i8, ReduceOp::min, 0x80, 0x7f), 0x80U) << isa.name;
    EXPECT_EQ(of(DType::u8, ReduceOp::min, 0x80, 0x7f), 0x7fU) << isa.name;
  }
}

TEST(Logical, operators_ask_what_is_not_0_and_bitwise_ones_each_bit) {
  for (const Isa& isa : supported_isas()) {
    const auto of = [&](DType type, ReduceOp op) {
      return run(isa, type, op, std::vector<Bits>{2, 4});
    };
    for (const DType type : {DType::i8, DType::u16, DType::i32, DType::u64}) {
      EXPECT_EQ(of(type, ReduceOp::land), 1U) << isa.name;
      EXPECT_EQ(of(type, ReduceOp::lor), 1U) << isa.name;
      EXPECT_EQ(of(type, ReduceOp::lxor), 0U) << isa.name;
      EXPECT_EQ(of(type, ReduceOp::band), 0U) << isa.name;
      EXPECT_EQ(of(type, ReduceOp::bor), 6U) << isa.name;
      EXPECT_EQ(of(type, ReduceOp::bxor), 6U) << isa.name;
    }
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min,
                              ReduceOp::land, ReduceOp::lor, ReduceOp::band, ReduceOp::bor})
      EXPECT_EQ(of(DType::boolean, op), 1U) << isa.name << name_of(op);
    EXPECT_EQ(of(DType::boolean, ReduceOp::bxor), 0U) << isa.name;
  }
}

TEST(Complex, product_is_the_plain_formula) {
  const std::complex<float> a{1, 2}, b{3, 4};
  const void* const sources[] = {&a, &b};
  for (const Isa& isa : supported_isas()) {
    std::complex<float> result;
    kernel(isa, DType::complex64, ReduceOp::prod)(&result, nullptr, sources, 2, 1);
    EXPECT_EQ(result, (std::complex<float>{-5, 10})) << isa.name;
  }
}

}  // namespace
}  // namespace anyccl::test
