// Every algorithm in the catalog is right and costs what it says, on every communicator size.

#include <gtest/gtest.h>

#include "algorithm/schedule/check.hpp"
#include "support/sanitized.hpp"

namespace anyccl {
namespace {

// The machine is slow without optimisation and under sanitizers; all sizes are in the release
// build.
#if defined(NDEBUG)
constexpr int kLastSize = test::kSanitized ? 9 : 65;
#else
constexpr int kLastSize = 17;
#endif

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  std::string name = id(*info.param);
  name[name.find('/')] = '_';
  return name;
}

class Conformance : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Conformance, is_right_at_the_promised_cost_for_every_size) {
  const auto report = check_algorithm(*GetParam(), 1, kLastSize);
  ASSERT_TRUE(report.ok()) << report.status().message();
  std::size_t supported = 0;
  for (int n = 1; n <= kLastSize; ++n)
    supported += GetParam()->supports({.collective = GetParam()->collective, .size = n});
  EXPECT_EQ(report->sizes.size(), supported);
  EXPECT_GT(supported, 0U);
  for (const CheckReport::Size& size : report->sizes)
    EXPECT_LE(size.slots, kLeastSlots) << "slots per bank with " << size.size << " ranks";
}

INSTANTIATE_TEST_SUITE_P(Catalog, Conformance,
                         testing::ValuesIn(all_algorithms().begin(), all_algorithms().end()),
                         test_name);

}  // namespace
}  // namespace anyccl
