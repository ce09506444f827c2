// Functions of programs, called along the aligned tree.

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "framework/call/operators.hpp"
#include "support/joined.hpp"

namespace anyccl {
namespace {

using test::join, test::joined;
using Numbers = std::vector<std::uint32_t>;

std::uint32_t tree(std::size_t low, std::size_t high, const std::vector<Numbers>& sources,
                   std::size_t i) {
  if (high - low == 1) return sources[low][i];
  const std::size_t middle = low + std::bit_floor(high - low - 1);
  return joined(tree(low, middle, sources, i), tree(middle, high, sources, i));
}

TEST(ApplyOperator, folds_by_the_tree_with_the_lower_operand_in_inout) {
  const Operator op{.function = join};
  for (const std::size_t count : {0U, 1U, 1024U, 3000U})  // portions are of 1024
    for (std::size_t n = 1; n <= 33; ++n) {
      std::vector<Numbers> sources(n, Numbers(count));
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t i = 0; i < count; ++i)
          sources[k][i] = static_cast<std::uint32_t>(k * 1000003 + i);
      Numbers expected(count), second(count);
      for (std::size_t i = 0; i < count; ++i) expected[i] = tree(0, n, sources, i);
      std::vector<const void*> pointers;
      for (const Numbers& source : sources) pointers.push_back(source.data());
      Numbers& dst = sources[n / 2];  // may be a source
      apply(op, DType::u32, sizeof(std::uint32_t), dst.data(), second.data(), pointers.data(), n,
            count);
      ASSERT_EQ(dst, expected) << n << " sources of " << count;
      ASSERT_EQ(second, expected);
    }
}

}  // namespace
}  // namespace anyccl
