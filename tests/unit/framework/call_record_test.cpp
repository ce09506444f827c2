#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/call/call.hpp"

namespace anyccl {
namespace {

TEST(CallRecord, of_a_collective_that_does_not_exist_is_described_by_its_number) {
  CallRecord call;
  for (const int number : {18, 77, 255}) {
    call.collective = static_cast<std::uint8_t>(number);
    EXPECT_EQ(describe(call), fmt::format("a collective of number {}", number));
  }
}

TEST(CallRecord, of_any_bytes_can_be_described) {
  for (int byte = 0; byte < 256; ++byte) {
    CallRecord call;
    call.collective = call.dtype = call.op = call.parts = static_cast<std::uint8_t>(byte);
    EXPECT_FALSE(describe(call).empty());
    call.parts = 0;
    EXPECT_FALSE(describe(call).empty());
  }
}

}  // namespace
}  // namespace anyccl
