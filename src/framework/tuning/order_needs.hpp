#pragma once
// What can be asked of the order of additions.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {

enum class OrderNeed : std::uint8_t {
  any,
  tree,             ///< All results are the aligned tree over the ranks.
  tree_in_one_step  ///< And there is no rounding inside of it.
};

/// Of a sum by the tree of such elements: those of 16 and 8 bits are rounded where a step ends.
OrderNeed need_of_tree(DType dtype);

/// Whether the order of the operands has no effect on a result.
bool is_exact(DType dtype, ReduceOp op);

bool meets(const Algorithm& algorithm, const Shape& shape, OrderNeed need);

}  // namespace anyccl
