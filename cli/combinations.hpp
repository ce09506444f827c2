#pragma once

#include <string_view>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl::cli {

/// An algorithm with a protocol that it can be forced to use.
struct Combination {
  const Algorithm* algorithm = nullptr;
  std::string_view protocol;
};

/// All of them, in the order of the catalog. Several blocks in one publication do not fit the line
/// of LL; messages whose size the receiver must be told fit neither that nor the slot of LL128.
std::vector<Combination> all_combinations();

}  // namespace anyccl::cli
