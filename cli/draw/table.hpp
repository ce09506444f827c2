#pragma once

#include <string>
#include <vector>

namespace anyccl::cli {

using Line = std::vector<std::string>;

/// Columns as wide as their widest word; the first line is the head.
std::string table(const std::vector<Line>& lines);

}  // namespace anyccl::cli
