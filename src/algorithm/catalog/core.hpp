#pragma once
// For algorithms that want a power of two of ranks.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {

/// The core is a power of two; `folded` pairs 2i, 2i+1 take part as one, which is 2i+1.
struct Core {
  explicit Core(int n)
      : size(static_cast<int>(std::bit_floor(static_cast<unsigned>(n)))), folded(n - size) {}
  Rank rank(int i) const { return Rank{i < folded ? 2 * i + 1 : i + folded}; }
  int size, folded;
};

}  // namespace anyccl
