#pragma once

#include <span>
#include <string>

#include "anyccl/status.hpp"
#include "plan/cluster.hpp"

namespace anyccl::cli {

/// The classes of links that a calibration can give: "inside" (shared memory) and "between" (TCP).
inline constexpr std::string_view kLinkClasses[] = {"inside", "between"};

/// Gives the cluster the speeds that `anyccl tune --calibrate` measured: of its longest messages,
/// and the time of its shortest ones. `text`: of `file`, which messages name. `classes`: of
/// kLinkClasses. Errors: invalid_argument, for a text that is no calibration, or without the link.
Status use_measured_links(const std::string& text, const std::string& file,
                          std::span<const std::string> classes, Cluster& cluster);

}  // namespace anyccl::cli
