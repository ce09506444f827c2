#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// Calls `take` with the text of each file; of a folder, of its files that are named
/// "PREFIX....json". Errors: those of `take`, with the file's name; invalid_argument when one
/// cannot be read, or there is none.
Status read_each(const std::vector<std::string>& paths, std::string_view prefix,
                 const std::function<Status(const std::string& text)>& take);

}  // namespace anyccl::cli
