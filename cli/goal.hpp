#pragma once

#include <cstddef>
#include <string>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"

namespace anyccl::cli {

/// An algorithm as text in GOAL, the language of LogGOPSim and ATLAHS: what each rank sends,
/// receives and computes, and what must be done before. Messages of two ranks have their number as
/// tag, steps are ordered by the memory that they touch, and additions are `calc` of so many ns.
///
/// `bytes`: of the vector, or of each block. `bytes_per_ns`: how fast additions and copies are.
/// Errors: unsupported, of blocks that differ in size.
Result<std::string> to_goal(const Algorithm& algorithm, const Shape& shape, std::size_t bytes,
                            double bytes_per_ns);

}  // namespace anyccl::cli
