#include "perf/values.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace anyccl::cli {
namespace {

constexpr std::size_t kCount = 10'000;  // More than two periods.

/// A buffer of kCount elements as numbers.
std::vector<double> numbers(const TypeName& type, const std::vector<std::byte>& stored) {
  std::vector<double> read(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::byte* const at = &stored[i * type.bytes];
    const auto as = [at](auto number) {
      std::memcpy(&number, at, sizeof number);
      return number;
    };
    if (type.type == anycclInt64) read[i] = static_cast<double>(as(std::int64_t{}));
    if (type.type == anycclInt32) read[i] = as(std::int32_t{});
    if (type.type == anycclFloat64) read[i] = as(double{});
    if (type.type == anycclFloat32) read[i] = static_cast<double>(as(float{}));
    if (type.type == anycclBfloat16)
      read[i] = static_cast<double>(std::bit_cast<float>(std::uint32_t{as(std::uint16_t{})} << 16));
    if (type.type == anycclFloat16) {
      const int bits = as(std::uint16_t{});
      const int whole = bits % 1024 + 1024, exponent = bits >> 10 & 31;
      const double magnitude = bits % 32768 == 0 ? 0 : std::ldexp(whole, exponent - 25);
      read[i] = bits < 32768 ? magnitude : -magnitude;
    }
  }
  return read;
}

std::vector<std::byte> buffer(const TypeName& type, const Elements& elements, std::size_t first = 0,
                              std::uint32_t turn = 1) {
  std::vector<std::byte> stored(kCount * type.bytes);
  elements.write(stored.data(), first, kCount, turn);
  return stored;
}

class EachType : public ::testing::TestWithParam<TypeName> {};
INSTANTIATE_TEST_SUITE_P(Types, EachType, ::testing::ValuesIn(kTypes),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(EachType, sums_what_the_ranks_give) {
  for (const int ranks : {1, 2, 3, 8, 64, 256, 300}) {
    const Values values(GetParam(), ranks);
    std::vector<double> total(kCount);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<double> given = numbers(GetParam(), buffer(GetParam(), values.of(rank)));
      for (std::size_t i = 0; i < kCount; ++i) total[i] += given[i];
    }
    EXPECT_EQ(numbers(GetParam(), buffer(GetParam(), values.sum())), total) << ranks << " ranks";
  }
}

TEST_P(EachType, sums_are_exact_in_the_type_in_any_order) {
  for (const int ranks : {2, 8, 64, 256}) {
    double most = 0;  // Of any partial sum.
    for (int rank = 0; rank < ranks; ++rank) {
      double largest = 0;
      for (const double x :
           numbers(GetParam(), buffer(GetParam(), Values(GetParam(), ranks).of(rank))))
        largest = std::max(largest, std::abs(x));
      most += largest;
    }
    EXPECT_LE(most, GetParam().type == anycclBfloat16  ? 0x1p8
                    : GetParam().type == anycclFloat16 ? 0x1p11
                    : GetParam().type == anycclInt64   ? 0x1p63
                                                       : 0x1p24);
  }
}

TEST_P(EachType, finds_the_maximum_and_the_minimum_over_the_ranks) {
  const int ranks = 5;
  const Values values(GetParam(), 1);
  std::vector<double> most(kCount, -1e300), least(kCount, 1e300);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<double> given = numbers(GetParam(), buffer(GetParam(), values.of(rank)));
    for (std::size_t i = 0; i < kCount; ++i) {
      most[i] = std::max(most[i], given[i]);
      least[i] = std::min(least[i], given[i]);
    }
  }
  EXPECT_EQ(numbers(GetParam(), buffer(GetParam(), values.max(ranks))), most);
  EXPECT_EQ(numbers(GetParam(), buffer(GetParam(), values.min())), least);
}

TEST_P(EachType, accepts_what_it_wrote) {
  const Elements elements = Values(GetParam(), 2).of(1);
  const auto stored = buffer(GetParam(), elements, 17, 3);
  EXPECT_EQ(elements.wrong(stored.data(), 17, kCount, 3), 0U);
}

TEST_P(EachType, counts_single_wrong_elements) {
  const Elements elements = Values(GetParam(), 2).of(1);
  auto stored = buffer(GetParam(), elements);
  for (const std::size_t i : {std::size_t{0}, std::size_t{5000}, kCount - 1})
    stored[i * GetParam().bytes] ^= std::byte{1};
  EXPECT_EQ(elements.wrong(stored.data(), 0, kCount, 1), 3U);
}

TEST_P(EachType, notices_elements_of_another_place) {
  const Elements elements = Values(GetParam(), 2).of(1);
  for (const unsigned shift : {1U, 4U, 16U, 64U, 1024U, 4096U, 65536U}) {
    const auto stored = buffer(GetParam(), elements, shift);
    EXPECT_GT(elements.wrong(stored.data(), 0, kCount, 1), kCount * 9 / 10)
        << "shifted by " << shift;
  }
}

TEST_P(EachType, notices_elements_of_another_turn) {
  const Elements elements = Values(GetParam(), 2).of(1);
  const auto stored = buffer(GetParam(), elements, 0, 1);
  EXPECT_GT(elements.wrong(stored.data(), 0, kCount, 2), kCount * 9 / 10);
}

TEST_P(EachType, notices_another_rank) {
  const Values values(GetParam(), 8);
  const auto stored = buffer(GetParam(), values.of(2));
  EXPECT_EQ(values.of(3).wrong(stored.data(), 0, kCount, 1), kCount);
}

}  // namespace
}  // namespace anyccl::cli
