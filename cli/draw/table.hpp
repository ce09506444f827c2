#pragma once

#include <string>
#include <vector>

namespace anyccl::cli {

using Line = std::vector<std::string>;

/// Makes columns as wide as their widest word. The first line, the head, must be there, and no line
/// may have more words than it.
std::string table(const std::vector<Line>& lines);

}  // namespace anyccl::cli
