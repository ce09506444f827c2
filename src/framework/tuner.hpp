#pragma once

#include <string>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"

namespace anyccl {

/// What the choice of an algorithm depends on; equal on all ranks of a communicator.
struct Question {
  Shape shape;            ///< in_place is ignored: ranks may differ in it.
  std::size_t bytes = 0;  ///< Of the vector or block, on average; 0 where no rank knows it.
  bool network = false;   ///< Some pair of ranks talks over a network.
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  std::size_t tile_bytes = 0;  ///< At most this much of the vector, or of each pair, at a time.
};

/// `forced`: the user's choice of an algorithm by name, or empty. It holds for the collectives that
/// have an algorithm of this name. Errors: unsupported when the forced one cannot do this shape.
Result<Choice> choose(const Question& question, const std::string& forced);

/// Errors: invalid_argument when no collective has an algorithm of this name.
Status check_algorithm_name(const std::string& name);

}  // namespace anyccl
