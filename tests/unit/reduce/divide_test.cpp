#include <gtest/gtest.h>

#include "reference.hpp"

namespace anyccl::test {
namespace {

constexpr std::uint32_t kDivisors[] = {1, 2, 3, 7, 8, 100, 1000, 1 << 24};

class Divide : public testing::TestWithParam<DType> {
 protected:
  DType type() const { return GetParam(); }

  /// Of a type that is not complex.
  Memory quotients(const Memory& elements, std::uint32_t divisor) const {
    const std::size_t bytes = bytes_of(type());
    Memory all(elements.size());
    for (std::size_t i = 0; i < elements.size() / bytes; ++i) {
      const Bits bits = divided(type(), bits_at(elements, bytes, i), divisor);
      std::memcpy(all.data() + i * bytes, &bits, bytes);
    }
    return all;
  }
};

std::vector<DType> plain_types() {
  std::vector<DType> plain = all_types();
  std::erase_if(plain, [](DType type) { return is_complex(type) || type == DType::boolean; });
  return plain;
}

INSTANTIATE_TEST_SUITE_P(Types, Divide, testing::ValuesIn(plain_types()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(Divide, gives_the_bits_of_the_definition_at_any_address_and_in_place) {
  std::mt19937_64 random(1);
  for (std::size_t count = 0; count < 150; ++count) {
    const Memory elements = random_elements(type(), count, random);
    for (const Isa& isa : supported_isas()) {
      const std::uint32_t divisor = kDivisors[count % std::size(kDivisors)];
      const Memory expected = quotients(elements, divisor);
      const std::size_t misaligned = count % 5;
      Memory source(misaligned + elements.size()), result(elements.size() + 2, 0xa5);
      std::copy(elements.begin(), elements.end(), source.end() - std::ssize(elements));
      const DivideFn divide = kernels(isa, type()).divide;

      divide(result.data() + 1, source.data() + misaligned, count, divisor);
      divide(source.data() + misaligned, source.data() + misaligned, count, divisor);

      ASSERT_EQ(Memory(result.begin() + 1, result.end() - 1), expected) << isa.name << " " << count;
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                             source.begin() + std::ssize(source) - std::ssize(elements)));
      ASSERT_TRUE(result.front() == 0xa5 && result.back() == 0xa5);
    }
  }
}

TEST_P(Divide, is_right_for_every_value_of_16_and_8_bits) {
  const std::size_t bytes = bytes_of(type());
  if (bytes > 2) return;
  Memory elements((std::size_t{1} << 8 * bytes) * bytes);
  for (std::size_t i = 0; i < elements.size() / bytes; ++i)
    std::memcpy(elements.data() + i * bytes, &i, bytes);
  for (const std::uint32_t divisor : kDivisors) {
    const Memory expected = quotients(elements, divisor);
    for (const Isa& isa : supported_isas()) {
      Memory result(elements.size());
      kernels(isa, type()).divide(result.data(), elements.data(), result.size() / bytes, divisor);
      ASSERT_EQ(result, expected) << isa.name << " " << divisor;
    }
  }
}

TEST(DivideComplex, divides_both_parts) {
  for (const Isa& isa : supported_isas()) {
    float single[] = {3.0F, -6.0F, 0.0F, 1.0F, 1e30F, 5.0F};
    double twice[] = {3.0, -6.0, 0.0, 1.0, 1e300, 5.0};
    kernels(isa, DType::complex64).divide(single, single, 3, 3);
    kernels(isa, DType::complex128).divide(twice, twice, 3, 3);
    const float expected[] = {1.0F, -2.0F, 0.0F, 1.0F / 3, 1e30F / 3, 5.0F / 3};
    const double doubles[] = {1.0, -2.0, 0.0, 1.0 / 3, 1e300 / 3, 5.0 / 3};
    EXPECT_TRUE(std::equal(std::begin(single), std::end(single), expected)) << isa.name;
    EXPECT_TRUE(std::equal(std::begin(twice), std::end(twice), doubles)) << isa.name;
  }
}

}  // namespace
}  // namespace anyccl::test
