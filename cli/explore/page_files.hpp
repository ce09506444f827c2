#pragma once

#include <string_view>

namespace anyccl::cli {

// The files of page/, which CMake makes part of the tool.
extern const std::string_view kPageHtml, kPageStyle, kPageScript;

}  // namespace anyccl::cli
