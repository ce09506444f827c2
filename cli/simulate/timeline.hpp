#pragma once

#include <string>

#include "simulate/replay.hpp"

namespace anyccl::cli {

/// A trace for Perfetto (ui.perfetto.dev) or chrome://tracing: for each rank when it waited and
/// when it added, with an arrow for each message. Times are in microseconds.
std::string timeline(const ReplayLog& log, std::uint32_t ranks, const std::string& title);

}  // namespace anyccl::cli
