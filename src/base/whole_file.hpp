#pragma once
// Tables, dumps, metrics and what the command line makes are written as whole files, and files that
// users name are read so.

#include <string>
#include <string_view>

#include "anyccl/status.hpp"

namespace anyccl {

/// Writes a file that readers see as a whole or not at all; a plain file of that name is replaced.
/// Errors: system_error, also if something else has the name; then nothing is left of it.
Status write_whole_file(const std::string& path, std::string_view text);

/// All of a file, or, if it is "-", of the standard input. Errors: system_error naming it, also for
/// a folder, and for what has more than `most` bytes, such as /dev/zero.
Result<std::string> read_whole_file(const std::string& path,
                                    std::size_t most = std::size_t{1} << 30);

}  // namespace anyccl
