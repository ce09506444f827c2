// The table of docs/observe/blame.md has the hangs that are planted, and no others.

#include <set>

#include "planted.hpp"

namespace anyccl::test {
namespace {

constexpr const char* kInPython = "held_gil";  // bindings/python/tests/test_blame.py

std::set<std::string> planted() {
  std::set<std::string> names{kInPython};
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    if (std::string(suite.name()) != "Over/Planted") continue;
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const std::string name = suite.GetTestInfo(t)->name();
      names.insert(name.substr(0, name.find('/')));
    }
  }
  return names;
}

TEST(TwentyHangs, that_are_listed_are_those_that_are_planted) {
  std::set<std::string> names;
  for (const Listed& row : listed()) names.insert(row.name);
  EXPECT_EQ(names.size(), 20U);
  EXPECT_EQ(names, planted());
}

}  // namespace
}  // namespace anyccl::test
