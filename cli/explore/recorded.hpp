#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "trace/traces.hpp"

namespace anyccl::cli {

/// The most calls of all ranks that a page has; of more, the last ones are kept.
inline constexpr std::size_t kMostRecorded = 40000;

/// What ranks did when, by communicator: what page/recorded.js reads. `traces`: as align() leaves
/// them.
nlohmann::ordered_json recorded_json(std::vector<RankTrace> traces);

}  // namespace anyccl::cli
