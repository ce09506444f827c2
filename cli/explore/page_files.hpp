#pragma once

#include <span>
#include <string_view>

namespace anyccl::cli {

// The files of page/, which CMake makes part of the tool.
extern const std::string_view kPageHtml, kPageStyle;
/// One script, in the order of its files: compilers need not take a literal of more than 65,536
/// characters.
extern const std::span<const std::string_view> kPageScripts;

}  // namespace anyccl::cli
