#pragma once

#include <string>

#include "simulate/machine.hpp"
#include "simulate/network.hpp"
#include "simulate/replay.hpp"

namespace anyccl::cli {

/// Returns tables of what the links carried: by class, and of the five busiest ones.
std::string link_loads(const Network& network, const Machine& machine, const ReplayResult& result);

/// A picture that needs no other file: the network, with each cable the redder and wider the more
/// it carried; null: only the network. Errors: invalid_argument for more than kMostDrawn nodes.
inline constexpr std::uint32_t kMostDrawn = 600;
Result<std::string> network_svg(const Network& network, const ReplayResult* result);

/// Its nodes and cables, in words.
std::string network_text(const Network& network);

}  // namespace anyccl::cli
