#pragma once

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// Measures the AllReduce algorithms of a new communicator and lets it choose by that where nothing
/// else has been measured. Collective; takes about 20 ms by rank 0's clock, which decides before
/// each measurement whether there is time for it. All ranks end up with the same times: those of
/// the slowest rank. Algorithms that were measured fewer than four times are left out.
///
/// Errors: as of the operations that it runs, such as remote_error naming a rank that died; timeout
/// at `deadline`.
Status tune_at_start(Comm& comm, Deadline deadline);

}  // namespace anyccl
