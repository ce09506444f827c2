#pragma once
// `anyccl tune` leaves what it has measured on a machine in a file. A process reads it here when it
// first creates a communicator.

#include <memory>
#include <string>

#include "framework/tuning/tuner_table.hpp"

namespace anyccl {

/// Where in a user's cache folder `anyccl tune` leaves the measurements of this machine; empty if
/// `cache_folder` is. Nothing is looked for on the disk.
std::string machine_table_file(const std::string& cache_folder);

/// The table of the file; null: no file. Errors, which say what to do: invalid_usage if another
/// user may have written it; system_error; invalid_argument when it holds no measurements.
Result<std::shared_ptr<const TunerTable>> read_machine_table(const std::string& file);

}  // namespace anyccl
