#pragma once
// Texts that come from peers or from files may hold anything. They pass through printable() before
// they get into errors or the log.

#include <string>
#include <string_view>

namespace anyccl {

/// Text of another process as people may see it: a question mark in the place of each control
/// character, and of each byte that is no UTF-8, so that it neither moves the cursor nor looks like
/// lines of the log.
std::string printable(std::string_view text);

}  // namespace anyccl
