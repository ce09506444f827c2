#pragma once
// Users describe algorithms of their own in files (docs/own-algorithms.md), which they name in
// ANYCCL_ALGO_PATH, by a call or on the command line. The functions here read such files, and add
// their algorithms to those of the catalog.

#include <span>
#include <string>
#include <vector>

#include "algorithm/loaded/loaded_algorithm.hpp"

namespace anyccl {

/// Reads a file; "-": the standard input. Errors: as parse_algorithm(); system_error.
Result<WrittenAlgorithm> read_algorithm(const std::string& file);

/// Reads files, and the *.json of folders in the order of their names, and adds what they describe
/// to all_algorithms(), for as long as the process lives. An algorithm that is known already, from
/// the same or another file, is not added again. `paths`: as "mine.json:/usr/share/mine", relative
/// to the working folder. Returns what they describe.
///
/// Threads: any. Errors: as read_algorithm(); invalid_argument when an algorithm of the catalog has
/// the name, or another one was loaded with it. Files read before an error stay added.
Result<std::vector<const LoadedAlgorithm*>> load_algorithm_files(const std::string& paths);

}  // namespace anyccl
