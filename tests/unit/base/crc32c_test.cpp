#include "base/crc32c.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace anyccl {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, is_that_of_RFC_3720) {
  const std::vector<std::byte> zeros(32), ones(32, std::byte{0xFF});
  for (const auto& crc : {crc32c, crc32c_by_table}) {
    EXPECT_EQ(crc(zeros, 0), 0x8A9136AAU);
    EXPECT_EQ(crc(ones, 0), 0x62A8AB43U);
    EXPECT_EQ(crc(bytes_of("123456789"), 0), 0xE3069283U);
    EXPECT_EQ(crc({}, 0), 0U);
  }
}

TEST(Crc32c, is_the_same_with_and_without_the_instruction) {
  std::vector<std::byte> data(300);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37 + i / 7);
  for (std::size_t begin = 0; begin < 9; ++begin)
    for (std::size_t count = 0; begin + count <= data.size(); ++count) {
      const auto part = std::span<const std::byte>(data).subspan(begin, count);
      ASSERT_EQ(crc32c(part), crc32c_by_table(part)) << begin << ", " << count;
    }
}

TEST(Crc32c, goes_on_from_what_was_before) {
  EXPECT_EQ(crc32c(bytes_of("56789"), crc32c(bytes_of("1234"))), 0xE3069283U);
}

}  // namespace
}  // namespace anyccl
