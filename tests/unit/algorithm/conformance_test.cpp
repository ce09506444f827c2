// Every algorithm in the catalog is right and costs what it says, on every communicator size.

#include <gtest/gtest.h>

#include "algorithm/verify/check.hpp"
#include "support/effort.hpp"

namespace anyccl::verify {
namespace {

struct Sizes {
  int first, last;
};
/// Up to 65 ranks: all of them, or the small ones and those around powers of two. Sanitizers see
/// the same code with any number.
std::vector<Sizes> sizes() {
#if defined(NDEBUG)
  if (test::is_long()) return {{1, 65}};
  if (!test::kSanitized) return {{1, 17}, {31, 33}, {64, 65}};
#endif
  if (test::kSanitized) return {{1, 5}, {8, 8}};
  return {{1, 9}};
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  std::string name = id(*info.param);
  name[name.find('/')] = '_';
  return name;
}

class Conformance : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Conformance, is_right_at_the_promised_cost_for_every_size) {
  std::size_t checked = 0;
  for (const auto [first, last] : sizes()) {
    const auto report = check_algorithm(*GetParam(), first, last);
    ASSERT_TRUE(report.ok()) << report.status().message();
    std::size_t supported = 0;
    for (int n = first; n <= last; ++n)
      supported += GetParam()->supports({.collective = GetParam()->collective, .size = n});
    EXPECT_EQ(report->sizes.size(), supported);
    checked += supported;
    for (const CheckReport::Size& size : report->sizes)
      EXPECT_LE(size.slots, kLeastSlots) << "slots per bank with " << size.size << " ranks";
  }
  EXPECT_GT(checked, 0U);
}

INSTANTIATE_TEST_SUITE_P(Catalog, Conformance,
                         testing::ValuesIn(all_algorithms().begin(), all_algorithms().end()),
                         test_name);

}  // namespace
}  // namespace anyccl::verify
