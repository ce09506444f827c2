#include "perf/values.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "support/effort.hpp"

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
    // A float of this layout.
    const auto narrow = [](unsigned bits, int exponent_bits, int mantissa_bits) {
      const unsigned mantissa = bits % (1U << mantissa_bits);
      const auto exponent = static_cast<int>(bits >> mantissa_bits) % (1 << exponent_bits) -
                            ((1 << (exponent_bits - 1)) - 1);
      const bool zero = bits % (1U << (exponent_bits + mantissa_bits)) == 0;
      const double magnitude =
          zero ? 0 : std::ldexp(mantissa + (1U << mantissa_bits), exponent - mantissa_bits);
      return bits >> (exponent_bits + mantissa_bits) == 0 ? magnitude : -magnitude;
    };
    switch (type.type) {
      case anycclInt64:
        read[i] = static_cast<double>(as(std::int64_t{}));
        break;
      case anycclUint64:
        read[i] = static_cast<double>(as(std::uint64_t{}));
        break;
      case anycclInt32:
        read[i] = as(std::int32_t{});
        break;
      case anycclUint32:
        read[i] = as(std::uint32_t{});
        break;
      case anycclInt16:
        read[i] = as(std::int16_t{});
        break;
      case anycclUint16:
        read[i] = as(std::uint16_t{});
        break;
      case anycclInt8:
        read[i] = as(std::int8_t{});
        break;
      case anycclUint8:
      case anycclBool:
        read[i] = as(std::uint8_t{});
        break;
      case anycclFloat64:
      case anycclComplexDouble:
        read[i] = as(double{});
        break;
      case anycclFloat32:
      case anycclComplexFloat:  // the real part
        read[i] = static_cast<double>(as(float{}));
        break;
      case anycclBfloat16:
        read[i] = narrow(as(std::uint16_t{}), 8, 7);
        break;
      case anycclFloat16:
        read[i] = narrow(as(std::uint16_t{}), 5, 10);
        break;
      case anycclFloat8e4m3:
        read[i] = narrow(as(std::uint8_t{}), 4, 3);
        break;
      case anycclFloat8e5m2:
        read[i] = narrow(as(std::uint8_t{}), 5, 2);
        break;
      default:
        ADD_FAILURE() << "no test for " << type.name;
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
  if (GetParam().type == anycclBool) return;  // whose sum is or
  const std::vector<int> all{1, 2, 3, 8, 64, 256, 300};
  for (const int ranks : test::effort<std::vector<int>>({1, 3, 64}, all, all)) {
    const Values values(GetParam(), anycclSum, ranks);
    std::vector<double> total(kCount);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<double> given = numbers(GetParam(), buffer(GetParam(), values.of(rank)));
      for (std::size_t i = 0; i < kCount; ++i) total[i] += given[i];
    }
    EXPECT_EQ(numbers(GetParam(), buffer(GetParam(), values.result(ranks))), total)
        << ranks << " ranks";
  }
}

/// Up to here every whole number (of which int64 and uint64 have a multiple) is exact.
double largest_exact(anycclDataType_t type) {
  switch (type) {
    case anycclInt8:
      return 127;
    case anycclUint8:
      return 255;
    case anycclInt16:
      return 32767;
    case anycclUint16:
      return 65535;
    case anycclFloat8e5m2:
      return 0x1p3;
    case anycclFloat8e4m3:
      return 0x1p4;
    case anycclBfloat16:
      return 0x1p8;
    case anycclFloat16:
      return 0x1p11;
    case anycclInt64:
    case anycclUint64:
      return 0x1p63;
    default:
      return 0x1p24;
  }
}

TEST_P(EachType, sums_are_exact_in_the_type_in_any_order) {
  const std::vector<int> all{2, 8, 64, 256};
  for (const int ranks : test::effort<std::vector<int>>({2, 64}, all, all)) {
    double most = 0;  // Of any partial sum.
    for (int rank = 0; rank < ranks; ++rank) {
      double largest = 0;
      for (const double x :
           numbers(GetParam(), buffer(GetParam(), Values(GetParam(), anycclSum, ranks).of(rank))))
        largest = std::max(largest, std::abs(x));
      most += largest;
    }
    EXPECT_LE(most, largest_exact(GetParam().type));
  }
}

TEST_P(EachType, finds_the_maximum_and_the_minimum_over_the_ranks) {
  if (is_complex(GetParam().type)) return;
  const int ranks = 5;
  const Values values(GetParam(), anycclMax, ranks), other(GetParam(), anycclMin, ranks);
  std::vector<double> most(kCount, -1e300), least(kCount, 1e300);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<double> given = numbers(GetParam(), buffer(GetParam(), values.of(rank)));
    for (std::size_t i = 0; i < kCount; ++i) {
      most[i] = std::max(most[i], given[i]);
      least[i] = std::min(least[i], given[i]);
    }
  }
  EXPECT_EQ(numbers(GetParam(), buffer(GetParam(), values.result(ranks))), most);
  EXPECT_EQ(numbers(GetParam(), buffer(GetParam(), other.result(ranks))), least);
}

/// By the library's own kernels, one rank after the other and the other way round.
TEST_P(EachType, has_the_results_that_the_library_has_in_any_order) {
  for (const RedopName& redop : kRedops) {
    if (!is_possible(GetParam().type, redop.redop) || redop.redop == anycclAvg) continue;
    for (const int ranks : {2, 3, 9}) {
      const Values values(GetParam(), redop.redop, ranks);
      std::vector<std::byte> up = buffer(GetParam(), values.of(0)),
                             down = buffer(GetParam(), values.of(ranks - 1));
      for (int r = 1; r < ranks; ++r) {
        const auto next = buffer(GetParam(), values.of(r)),
                   before = buffer(GetParam(), values.of(ranks - 1 - r));
        ASSERT_EQ(anycclReduceLocal(next.data(), up.data(), kCount, GetParam().type, redop.redop,
                                    nullptr),
                  anycclSuccess);
        ASSERT_EQ(anycclReduceLocal(before.data(), down.data(), kCount, GetParam().type,
                                    redop.redop, nullptr),
                  anycclSuccess);
      }
      const Elements result = values.result(ranks);
      EXPECT_EQ(result.count_wrong(up.data(), 0, kCount, 1), 0U) << redop.name << ", " << ranks;
      EXPECT_EQ(result.count_wrong(down.data(), 0, kCount, 1), 0U) << redop.name << ", " << ranks;
    }
  }
}

TEST_P(EachType, averages_exactly) {
  if (!is_possible(GetParam().type, anycclAvg)) return;
  for (const int ranks : {1, 2, 3, 8, 300}) {
    const Values values(GetParam(), anycclAvg, ranks);
    std::vector<double> total(kCount);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<double> given = numbers(GetParam(), buffer(GetParam(), values.of(rank)));
      for (std::size_t i = 0; i < kCount; ++i) total[i] += given[i] / ranks;
    }
    const auto average = numbers(GetParam(), buffer(GetParam(), values.result(ranks)));
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_NEAR(average[i], total[i], std::abs(total[i]) * 1e-12 + 1e-12) << ranks << ", " << i;
  }
}

TEST_P(EachType, accepts_what_it_wrote) {
  const Elements elements = Values(GetParam(), anycclSum, 2).of(1);
  const auto stored = buffer(GetParam(), elements, 17, 3);
  EXPECT_EQ(elements.count_wrong(stored.data(), 17, kCount, 3), 0U);
}

TEST_P(EachType, counts_single_wrong_elements) {
  const Elements elements = Values(GetParam(), anycclSum, 2).of(1);
  auto stored = buffer(GetParam(), elements);
  for (const std::size_t i : {std::size_t{0}, std::size_t{5000}, kCount - 1})
    stored[i * GetParam().bytes] ^= std::byte{1};
  EXPECT_EQ(elements.count_wrong(stored.data(), 0, kCount, 1), 3U);
}

/// Between two places: some types have few whole numbers, so that elements often are what their
/// neighbours are.
std::size_t differences_at_least(const TypeName& type) {
  if (type.type == anycclBool) return kCount / 4;
  return type.bytes > 1 ? kCount * 9 / 10 : kCount / 2;
}

TEST_P(EachType, notices_elements_of_another_place) {
  const Elements elements = Values(GetParam(), anycclSum, 2).of(1);
  for (const unsigned shift : {1U, 4U, 16U, 64U, 1024U, 4096U, 65536U}) {
    const auto stored = buffer(GetParam(), elements, shift);
    EXPECT_GT(elements.count_wrong(stored.data(), 0, kCount, 1), differences_at_least(GetParam()))
        << "shifted by " << shift;
  }
}

TEST_P(EachType, notices_elements_of_another_turn) {
  const Elements elements = Values(GetParam(), anycclSum, 2).of(1);
  const auto stored = buffer(GetParam(), elements, 0, 1);
  EXPECT_GT(elements.count_wrong(stored.data(), 0, kCount, 2), differences_at_least(GetParam()));
}

TEST_P(EachType, notices_another_rank) {
  const Values values(GetParam());
  const auto stored = buffer(GetParam(), values.of(0));
  const std::size_t differ = values.of(1).count_wrong(stored.data(), 0, kCount, 1);
  if (GetParam().type == anycclBool)
    EXPECT_GT(differ, differences_at_least(GetParam()));
  else
    EXPECT_EQ(differ, kCount);
}

}  // namespace
}  // namespace anyccl::cli
