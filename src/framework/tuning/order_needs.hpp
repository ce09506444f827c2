#pragma once
// What a level of reproducibility asks of the order of additions. docs/numbers/reproducibility.md
// says what a level promises, docs/adr/0057 how it is kept.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {

/// These are the levels of ANYCCL_REPRODUCIBLE.
inline constexpr int kLevelOfRuns =
    1;  ///< The default: one order in all runs with the same settings.
inline constexpr int kLevelOfTrees = 2;   ///< From this one on results are the aligned tree.
inline constexpr int kLevelOfLeaves = 3;  ///< Calls with leaves are at this one at least.
inline constexpr int kMostLevel = 3;

/// What a sum of such elements by the tree takes: those of 16 and 8 bits are rounded where a step
/// ends.
Order tree_for(DType dtype);

/// Whether the order of the operands has no effect on a result.
bool is_exact(DType dtype, ReduceOp op);

/// Whether its order is `need`, or a stronger one; Order::position asks for nothing.
bool meets(const Algorithm& algorithm, const Shape& shape, Order need);

}  // namespace anyccl
