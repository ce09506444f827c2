#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "simulate/network.hpp"

namespace anyccl::cli {

/// "flat, ring, ...": what a description may begin with, for people.
std::string network_kinds();

/// From "torus", "torus:dims=4x4" or JSON such as {"format": "anyccl.topology/1", "kind": "torus",
/// "params": {"dims": "4x4"}}; what is not given follows from the number of ranks, which is at
/// least 1. Errors: invalid_argument naming what is wrong and what is allowed, also if there are
/// fewer ends than ranks.
Result<Network> read_network(std::string_view description, std::uint32_t ranks);

std::string to_json(const Network& network);

/// The end of each rank, from "linear" (rank i at end i) or "random:SEED". Errors:
/// invalid_argument.
Result<std::vector<std::uint32_t>> read_placement(std::string_view text, std::uint32_t ranks,
                                                  std::uint32_t ends);

}  // namespace anyccl::cli
