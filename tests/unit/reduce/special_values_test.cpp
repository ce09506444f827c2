#include <gtest/gtest.h>

#include "reference.hpp"

namespace anyccl::test {
namespace {

constexpr std::uint32_t kZero = 0, kMinusZero = 0x80000000, kOne = 0x3f800000;
constexpr std::uint32_t kInf = 0x7f800000, kMinusInf = 0xff800000, kDenormal = 1;
constexpr std::uint32_t kNans[] = {kNanF32,    0xffc00000, 0x7f800001,
                                   0xff800001, 0x7fffffff, 0xffffffff};

std::uint32_t f32_of(const Isa& isa, ReduceOp op, std::uint32_t a, std::uint32_t b) {
  const void* const sources[] = {&a, &b};
  std::uint32_t result = 0;
  kernel(isa, DType::f32, op)(&result, nullptr, sources, 2, 1);
  return result;
}
std::uint16_t bf16_of(const Isa& isa, ReduceOp op, std::uint32_t a, std::uint32_t b) {
  const auto x = static_cast<std::uint16_t>(a >> 16), y = static_cast<std::uint16_t>(b >> 16);
  const void* const sources[] = {&x, &y};
  std::uint16_t result = 0;
  kernel(isa, DType::bf16, op)(&result, nullptr, sources, 2, 1);
  return result;
}
std::int64_t i64_of(const Isa& isa, ReduceOp op, std::int64_t a, std::int64_t b) {
  const void* const sources[] = {&a, &b};
  std::int64_t result = 0;
  kernel(isa, DType::i64, op)(&result, nullptr, sources, 2, 1);
  return result;
}

/// f32 and bf16, both orders.
void expect(ReduceOp op, std::uint32_t a, std::uint32_t b, std::uint32_t result) {
  for (const Isa& isa : supported_isas()) {
    SCOPED_TRACE(testing::Message() << isa.name << std::hex << " " << a << " " << b);
    EXPECT_EQ(f32_of(isa, op, a, b), result);
    EXPECT_EQ(f32_of(isa, op, b, a), result);
    if (((a | b | result) & 0xffff) != 0) continue;  // Not a bf16.
    EXPECT_EQ(bf16_of(isa, op, a, b), result >> 16);
    EXPECT_EQ(bf16_of(isa, op, b, a), result >> 16);
  }
}

TEST(Max, of_a_nan_and_anything_is_the_quiet_nan) {
  for (const std::uint32_t nan : kNans)
    for (const std::uint32_t x :
         {kZero, kMinusZero, kOne, kInf, kMinusInf, kDenormal, nan, kNanF32})
      expect(ReduceOp::max, nan, x, kNanF32);
}

TEST(Max, orders_minus_zero_below_zero) {
  expect(ReduceOp::max, kMinusZero, kZero, kZero);
  expect(ReduceOp::max, kMinusZero, kMinusZero, kMinusZero);
  expect(ReduceOp::max, kMinusZero, kMinusZero | kDenormal, kMinusZero);
}

TEST(Max, orders_infinities) {
  expect(ReduceOp::max, kMinusInf, kInf, kInf);
  expect(ReduceOp::max, kMinusInf, kMinusInf, kMinusInf);
  expect(ReduceOp::max, kMinusInf, 0xff7fffff, 0xff7fffff);
  expect(ReduceOp::max, kInf, 0x7f7fffff, kInf);
}

TEST(Max, of_i64_is_signed) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  for (const Isa& isa : supported_isas()) {
    EXPECT_EQ(i64_of(isa, ReduceOp::max, -1, 1), 1) << isa.name;
    EXPECT_EQ(i64_of(isa, ReduceOp::max, kLeast, -1), -1) << isa.name;
  }
}

TEST(Sum, of_a_nan_and_anything_is_the_quiet_nan) {
  for (const std::uint32_t nan : kNans)
    for (const std::uint32_t x :
         {kZero, kMinusZero, kOne, kInf, kMinusInf, kDenormal, nan, kNanF32})
      expect(ReduceOp::sum, nan, x, kNanF32);
}

TEST(Sum, of_opposite_infinities_is_the_quiet_nan) {
  expect(ReduceOp::sum, kInf, kMinusInf, kNanF32);
}

TEST(Sum, keeps_minus_zero) {
  expect(ReduceOp::sum, kMinusZero, kMinusZero, kMinusZero);
  expect(ReduceOp::sum, kMinusZero, kZero, kZero);
}

TEST(Sum, of_denormals_is_exact) {
  expect(ReduceOp::sum, kDenormal, kDenormal, 2);
  expect(ReduceOp::sum, 0x00400000, 0x00400000, 0x00800000);
}

TEST(Sum, of_i64_wraps) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  for (const Isa& isa : supported_isas()) {
    EXPECT_EQ(i64_of(isa, ReduceOp::sum, kMost, 1), kLeast) << isa.name;
    EXPECT_EQ(i64_of(isa, ReduceOp::sum, kLeast, kLeast), 0) << isa.name;
  }
}

}  // namespace
}  // namespace anyccl::test
